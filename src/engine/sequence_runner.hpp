#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "engine/batch_buffer.hpp"
#include "model/model.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {

/// Runs the tokens of one sequence through a model, in passes that the model can take.
class SequenceRunner {
 public:
  /// max_rows: most tokens a pass; the model was loaded with at least as many. The sequence lives in slot 0 of `cache`.
  SequenceRunner(Backend& backend, Model& model, Cache& cache, std::int64_t max_rows);

  /// Forgets the sequence.
  void reset();

  /// Tokens the model has seen.
  std::int64_t length() const { return length_; }

  /// Appends `ids`, at least one, and returns the last one's logits: in host memory, the caller may change them, valid
  /// until the next call. Allocates nothing.
  std::span<float> extend(std::span<const TokenId> ids);

  /// The same, but returns the token with the largest logit (ties to the lower id), chosen on the device so that a
  /// vocabulary's logits need not come to the host; nothing if a logit is not finite.
  std::optional<TokenId> extend_greedily(std::span<const TokenId> ids);

  /// Appends `ids` in passes of at most `chunk` tokens and writes the logits of each, row-major.
  void extend(std::span<const TokenId> ids, std::int64_t chunk, std::span<float> logits);

  /// Runs the sequence, which is `ids`, once more with every layer's output checked, after logits were found not to be
  /// finite. All of it, since a value that the cache holds may come from a pass before the last. Error::check_failed
  /// names the first layer that is to blame.
  [[noreturn]] void raise_non_finite(std::span<const TokenId> ids);

 private:
  /// What a pass computes beside the cache, and where: a backend's recorded steps are told apart by it.
  enum Variant : int { no_logits, last_logits, chosen_token, all_logits };

  void run(std::span<const TokenId> ids, Variant variant, const Tensor& logits);
  void run_to_last(std::span<const TokenId> ids, Variant variant);

  Backend& backend_;
  Model& model_;
  Cache& cache_;
  BatchBuffer buffer_;
  OwnedTensor last_logits_;  // [1, vocabulary]
  OwnedTensor chosen_;       // [1, 1]
  std::vector<float> host_logits_;
  std::int64_t length_ = 0;
};

}  // namespace qpn8
