#include "engine/sampler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "kernels/cpu/argmax.hpp"

namespace qpn8 {
namespace {

// The weight of the likeliest token; the others' are fractions of it. Tokens less likely by more than 2^-41 get none.
// With 2^24 tokens a sum still fits 64 bits.
constexpr int kWeightBits = 40;
constexpr std::uint64_t kPeakWeight = std::uint64_t{1} << kWeightBits;

constexpr std::size_t kBlock = 256;

// out[i] = exp((logits[i] - peak) * inverse) * kPeakWeight, for logits up to the peak. Not std::exp: its last bit
// differs between libraries, and with it a draw would. Without branches, so that a compiler vectorises it; over a whole
// vocabulary this is most of what sampling costs.
void scaled_exponentials(std::span<const float> logits, float peak, float inverse, std::span<float, kBlock> out) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693145752F;  // 15 significant bits, so that n * kLn2High is exact
  constexpr float kLn2Low = 1.42860677e-6F;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // The maximum of x and -29, where the result is below 1/2: of floats that are not positive, as integers.
    const auto bits = std::bit_cast<std::uint32_t>((logits[i] - peak) * inverse);
    const auto x = std::bit_cast<float>(std::min(bits, std::bit_cast<std::uint32_t>(-29.0F)));
    const auto n = static_cast<std::int32_t>(x * kLog2E - 0.5F);
    const float r = (x - static_cast<float>(n) * kLn2High) - static_cast<float>(n) * kLn2Low;
    // The Taylor series; |r| <= ln(2) / 2 leaves a remainder below 6e-9.
    float p = 1.0F / 5040;
    p = p * r + 1.0F / 720;
    p = p * r + 1.0F / 120;
    p = p * r + 1.0F / 24;
    p = p * r + 1.0F / 6;
    p = p * r + 1.0F / 2;
    p = p * r + 1.0F;
    p = p * r + 1.0F;
    out[i] = p * std::bit_cast<float>((n + 127 + kWeightBits) * (1 << 23));
  }
}

// Buckets of rising weight for radix selection: the exponent and four bits of the mantissa, 16 buckets an octave.
std::size_t bucket_of(std::uint64_t weight) {
  constexpr std::uint32_t kOfOne = 127U << 4;
  return (std::bit_cast<std::uint32_t>(static_cast<float>(weight)) >> 19) - kOfOne;
}
constexpr std::size_t kBuckets = (kWeightBits << 4) + 1;

// Within a bucket the selection goes on in parts of equal width, so many bits at a time.
constexpr int kRangeBits = 8;

}  // namespace

Sampler::Sampler(std::size_t vocabulary) : vocabulary_(vocabulary), seen_(vocabulary) {
  seen_ids_.reserve(vocabulary);
  best_logits_.reserve(vocabulary);
  candidates_.reserve(vocabulary);
  scratch_.reserve(vocabulary);
}

void Sampler::start(const SamplingOptions& options, std::span<const TokenId> prompt) {
  options_ = options;
  random_ = Random(options.seed);
  for (const TokenId id : seen_ids_) seen_[static_cast<std::size_t>(id)] = false;
  seen_ids_.clear();
  for (const TokenId id : prompt) see(id);
}

void Sampler::see(TokenId id) {
  if (options_.repetition_penalty == 1.0 || seen_[static_cast<std::size_t>(id)]) return;
  seen_[static_cast<std::size_t>(id)] = true;
  seen_ids_.push_back(id);
}

std::optional<TokenId> Sampler::next(std::span<float> logits) {
  check(logits.size() == vocabulary_, "there is a logit for every token");
  if (!penalise(logits)) return std::nullopt;
  const std::optional<std::size_t> best = cpu::argmax(logits);
  if (!best) return std::nullopt;
  auto token = static_cast<TokenId>(*best);
  if (options_.temperature > 0) {
    gather(logits, logits[*best]);
    if (options_.top_p < 1) keep_top_p();
    if (options_.min_p > 0) keep_min_p();
    token = draw();
  }
  see(token);
  return token;
}

// False if one of the logits is not finite: an infinity must not become an ordinary large number by the clamp.
bool Sampler::penalise(std::span<float> logits) const {
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (const TokenId id : seen_ids_) {
    float& logit = logits[static_cast<std::size_t>(id)];
    if (!std::isfinite(logit)) return false;
    logit = std::clamp(logit < 0 ? logit * penalty : logit / penalty, -kMost, kMost);
  }
  return true;
}

// The tokens that top-k leaves, with their weights at this temperature, in order of rising id.
void Sampler::gather(std::span<const float> logits, float peak) {
  candidates_.clear();
  const auto top_k = static_cast<std::size_t>(options_.top_k);
  if (top_k == 0 || top_k >= vocabulary_) {
    for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
      weigh(logits.subspan(begin, std::min(kBlock, logits.size() - begin)), peak,
            [&](std::size_t i) { return static_cast<TokenId>(begin + i); });
    }
    return;
  }
  find_top_k(logits, top_k);
  std::array<float, kBlock> block{};
  for (std::size_t begin = 0; begin < top_k; begin += kBlock) {
    const std::size_t count = std::min(kBlock, top_k - begin);
    for (std::size_t i = 0; i < count; ++i) block[i] = best_logits_[begin + i].key;
    weigh(std::span(block).first(count), peak, [&](std::size_t i) { return best_logits_[begin + i].id; });
  }
}

template <class IdAt>
void Sampler::weigh(std::span<const float> block, float peak, IdAt id_at) {
  // Below 1e-30 all temperatures are alike, and this keeps 0 * (1 / temperature) from being NaN.
  const auto inverse = static_cast<float>(1.0 / std::max(options_.temperature, 1e-30));
  std::array<float, kBlock> weights{};
  scaled_exponentials(block, peak, inverse, weights);
  constexpr float kHalf = 0.5F;  // rounds; which way an exact half goes does not matter
  for (std::size_t i = 0; i < block.size(); ++i) {
    const auto weight = static_cast<std::uint64_t>(static_cast<std::int64_t>(weights[i] + kHalf));
    if (weight > 0) candidates_.push_back({weight, id_at(i)});
  }
}

// Leaves the k best in best_logits_, in order of rising id. What beats the k-th best so far waits in a buffer that is
// cut back to k when it is full; on logits in no particular order few get that far, so the cost is that of one pass.
void Sampler::find_top_k(std::span<const float> logits, std::size_t k) {
  const std::size_t room = std::min(vocabulary_, k + std::max<std::size_t>(k, 1024));
  const auto cut = [&] {
    std::nth_element(best_logits_.begin(), best_logits_.begin() + static_cast<std::ptrdiff_t>(k - 1),
                     best_logits_.end(), [](const RankedLogit& a, const RankedLogit& b) { return before(a, b); });
    best_logits_.resize(k);
    return best_logits_.back().key;
  };
  best_logits_.clear();
  float threshold = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // An equal logit loses: its id is higher than that of any token in the buffer.
    if (!(logits[i] > threshold)) continue;
    if (best_logits_.size() == room) {
      threshold = cut();
      if (!(logits[i] > threshold)) continue;
    }
    best_logits_.push_back({logits[i], static_cast<TokenId>(i)});
  }
  cut();
  std::sort(best_logits_.begin(), best_logits_.end(),
            [](const RankedLogit& a, const RankedLogit& b) { return a.id < b.id; });
}

// The token with which scratch_'s tokens, likeliest first, reach the weight `needed`; scratch_ is in order of rising
// id. Radix selection in the range of weights that is left, so that a flat distribution costs little more than a peaked
// one: ranking its tokens one by one would take several passes over the whole vocabulary.
Sampler::RankedWeight Sampler::last_within(std::uint64_t needed) {
  for (;;) {
    std::uint64_t least = kPeakWeight;
    std::uint64_t most = 0;
    for (const RankedWeight& token : scratch_) {
      least = std::min(least, token.key);
      most = std::max(most, token.key);
    }
    // Equal weights rank by id.
    if (least == most) return scratch_[static_cast<std::size_t>((needed - 1) / least)];
    const int shift = std::max(0, static_cast<int>(std::bit_width(most - least)) - kRangeBits);
    const auto part_of = [&](const RankedWeight& token) {
      return static_cast<std::size_t>((token.key - least) >> shift);
    };
    std::array<std::uint64_t, std::size_t{1} << kRangeBits> mass{};
    for (const RankedWeight& token : scratch_) mass[part_of(token)] += token.key;
    std::size_t part = mass.size() - 1;
    for (; mass[part] < needed; --part) needed -= mass[part];
    std::erase_if(scratch_, [&](const RankedWeight& token) { return part_of(token) != part; });
  }
}

// Keeps the fewest likeliest tokens that together have at least top_p of the weight.
void Sampler::keep_top_p() {
  const std::uint64_t total = total_weight();
  const double wanted = std::ceil(options_.top_p * static_cast<double>(total));
  std::uint64_t needed = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, total);

  // The bucket that holds the last token that stays: only its tokens need to be ranked.
  std::array<std::uint64_t, kBuckets> mass{};
  for (const RankedWeight& token : candidates_) mass[bucket_of(token.key)] += token.key;
  std::size_t bucket = kBuckets - 1;
  for (; mass[bucket] < needed; --bucket) needed -= mass[bucket];
  scratch_.clear();
  for (const RankedWeight& token : candidates_) {
    if (bucket_of(token.key) == bucket) scratch_.push_back(token);
  }

  const RankedWeight boundary = last_within(needed);
  std::erase_if(candidates_, [&](const RankedWeight& token) { return before(boundary, token); });
}

// Relative to the likeliest token, which top-k and top-p never remove: nothing needs to be normalised.
void Sampler::keep_min_p() {
  const double least = options_.min_p * static_cast<double>(kPeakWeight);
  std::erase_if(candidates_, [&](const RankedWeight& token) { return static_cast<double>(token.key) < least; });
}

std::uint64_t Sampler::total_weight() const {
  std::uint64_t total = 0;
  for (const RankedWeight& token : candidates_) total += token.key;
  return total;
}

TokenId Sampler::draw() {
  const std::uint64_t total = total_weight();
  check(total > 0, "the likeliest token is a candidate");
  std::uint64_t ticket = random_.below(total);
  for (const RankedWeight& token : candidates_) {
    if (ticket < token.key) return token.id;
    ticket -= token.key;
  }
  check(false, "a ticket below the total weight belongs to a token");
  return 0;
}

}  // namespace qpn8
