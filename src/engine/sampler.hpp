#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "engine/generation_request.hpp"

namespace qpn8 {

/// Chooses the tokens of one sequence after the other.
///
/// The vocabulary is never sorted: top-k and top-p find the last token that stays and filter by it. Weights are
/// integers, so their sums do not depend on the order of adding and a draw depends on logits, options and seed alone,
/// on every platform. All memory is allocated by the constructor (about 40 bytes a token of the vocabulary, touched
/// only by what needs it).
class Sampler {
 public:
  explicit Sampler(std::size_t vocabulary);

  /// Begins a sequence: the generator at its seed, the prompt's tokens seen by the penalty. Options are valid and ids
  /// in the vocabulary.
  void start(const SamplingOptions& options, std::span<const TokenId> prompt);

  /// The next token, which the penalty sees from now on; nothing if a logit is not finite.
  /// logits: one a token of the vocabulary; the penalty is applied in place.
  std::optional<TokenId> next(std::span<float> logits);

 private:
  template <class Key>
  struct Ranked {
    Key key;
    TokenId id;
    /// Larger keys come first, and of equal ones the lower id.
    friend bool before(const Ranked& a, const Ranked& b) { return a.key != b.key ? a.key > b.key : a.id < b.id; }
  };
  using RankedLogit = Ranked<float>;
  using RankedWeight = Ranked<std::uint64_t>;

  bool penalise(std::span<float> logits) const;
  void see(TokenId id);
  void gather(std::span<const float> logits, float peak);
  template <class IdAt>
  void weigh(std::span<const float> block, float peak, IdAt id_at);
  void find_top_k(std::span<const float> logits, std::size_t k);
  RankedWeight last_within(std::uint64_t needed);
  void keep_top_p();
  void keep_min_p();
  std::uint64_t total_weight() const;
  TokenId draw();

  std::size_t vocabulary_;
  SamplingOptions options_;
  Random random_{0};
  std::vector<bool> seen_;
  std::vector<TokenId> seen_ids_;
  std::vector<RankedLogit> best_logits_;
  std::vector<RankedWeight> candidates_;  ///< what may be drawn, in order of rising id
  std::vector<RankedWeight> scratch_;
};

}  // namespace qpn8
