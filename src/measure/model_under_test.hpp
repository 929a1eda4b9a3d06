#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/engine_loader.hpp"
#include "engine/engine_options.hpp"
#include "engine/load_observer.hpp"
#include "engine/sequence_runner.hpp"

namespace qpn8 {

/// A loaded model whose passes are timed one at a time, sampling included. Not thread-safe.
class ModelUnderTest {
 public:
  /// Errors as Engine's constructor.
  ModelUnderTest(const std::filesystem::path& folder, const EngineOptions& options, const LoadObserver& observer = {});

  const Plan& plan() const { return loaded_.plan; }
  std::int64_t context_length() const { return loaded_.front.context_length(); }
  const Model& model() const { return *loaded_.model; }

  /// Seconds from an empty cache to the first token of a random prompt of so many tokens, which the sequence then has.
  double prefill(std::int64_t tokens);

  /// Seconds a token, mean over `steps` greedy ones; each lengthens the sequence that prefill began.
  double decode(int steps);

  /// Tokens the sequence has.
  std::int64_t length() const { return runner_.length(); }

  /// Bytes that the next step reads: weights, and the keys and values of the sequence with that step's own.
  std::int64_t bytes_per_step() const;

 private:
  LoadedModel loaded_;
  SequenceRunner runner_;
  std::vector<TokenId> ids_;  ///< of the sequence, to find the layer by if a logit is not finite
  TokenId next_ = 0;
};

}  // namespace qpn8
