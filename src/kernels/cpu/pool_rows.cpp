#include "kernels/cpu/pool_rows.hpp"

#include <array>
#include <cmath>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool_rows.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

/// out[i] = sum of the tokens' values by the softmax of their gates.
void pool_channels(std::span<const PooledToken> tokens, std::span<float> out) {
  for_vectors(out.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto gate = [&](const PooledToken& token)
                          HWY_ATTR { return hn::Add(hn::LoadU(d, token.gates + i), hn::LoadU(d, token.bias + i)); };
    auto largest = gate(tokens.front());
    for (const PooledToken& token : tokens.subspan(1)) largest = hn::Max(largest, gate(token));
    auto total = hn::Zero(d);
    auto sum = hn::Zero(d);
    for (const PooledToken& token : tokens) {
      const auto weight = exp_nonpositive(d, hn::Sub(gate(token), largest));
      total = hn::Add(total, weight);
      sum = hn::MulAdd(weight, hn::LoadU(d, token.values + i), sum);
    }
    hn::StoreU(hn::Div(sum, total), d, out.data() + i);
  });
}

void pool_entry_kernel(std::span<const PooledToken> tokens, std::span<const float> norm, float eps,
                       std::span<float> entry) {
  pool_channels(tokens, entry);
  const float mean = sum_of_squares(entry.data(), entry.size()) / static_cast<float>(entry.size());
  const float inverse = 1.0F / std::sqrt(mean + eps);
  for_vectors(entry.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto unit = hn::Mul(hn::LoadU(d, entry.data() + i), hn::Set(d, inverse));
    hn::StoreU(hn::Mul(unit, hn::LoadU(d, norm.data() + i)), d, entry.data() + i);
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(pool_entry_kernel);

namespace {

/// The channels of a token that go into the entry of the window that begins at `window`.
PooledToken channels_for(const float* row, std::int64_t position, std::int64_t window, const PoolRule& rule,
                         const PoolWeights& weights) {
  const std::int64_t channels = weights.gate_bias.cols;
  const std::int64_t begin = rule.overlaps && position >= window ? channels / 2 : 0;
  return {row + begin, row + channels + begin, weights.gate_bias.row(position % rule.ratio).data() + begin};
}

std::int64_t first_pooled(std::int64_t window, const PoolRule& rule) {
  return rule.overlaps && window > 0 ? window - rule.ratio : window;
}

void rotate_tail(std::span<float> entry, std::span<const float> frequencies, std::int64_t position) {
  float* pair = entry.data() + entry.size() - 2 * frequencies.size();
  for (const float frequency : frequencies) {
    const double angle = static_cast<float>(position) * frequency;
    const auto cosine = static_cast<float>(std::cos(angle));
    const auto sine = static_cast<float>(std::sin(angle));
    const float a = pair[0];
    const float b = pair[1];
    pair[0] = a * cosine - b * sine;
    pair[1] = b * cosine + a * sine;
    pair += 2;
  }
}

}  // namespace

void pool_rows(MatrixView<const float> x, const RowPlaces& places, const PoolRule& rule, const PoolWeights& weights,
               const RowStore& pending, const RowStore& entries, MatrixView<float> scratch, ThreadTeam& team) {
  const auto width = static_cast<std::int64_t>(weights.norm.size());
  check(x.cols == 2 * weights.gate_bias.cols && weights.gate_bias.cols == (rule.overlaps ? 2 : 1) * width &&
            weights.gate_bias.rows == rule.ratio && entries.width == width && scratch.cols == width &&
            scratch.rows >= x.rows && pending.dtype == DType::f32 && pending.width == x.cols &&
            pending.per_slot >= (rule.overlaps ? 2 : 1) * rule.ratio && rule.ratio <= kMostPooled,
        "shapes of a pooling agree");
  team.for_ranges(x.rows, row_grain(4 * x.cols), [&](std::int64_t begin, std::int64_t end) {
    std::array<PooledToken, 2 * kMostPooled> tokens;
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t next = places.positions[static_cast<std::size_t>(t)] + std::int64_t{1};
      if (next % rule.ratio != 0) continue;
      const std::int64_t window = next - rule.ratio;
      std::size_t count = 0;
      for (std::int64_t position = first_pooled(window, rule); position < next; ++position) {
        tokens[count++] = channels_for(row_at(x, places, pending, t, position), position, window, rule, weights);
      }
      const std::span<float> entry = scratch.row(t);
      HWY_DYNAMIC_DISPATCH(pool_entry_kernel)({tokens.data(), count}, weights.norm, rule.eps, entry);
      rotate_tail(entry, weights.frequencies, window);
      const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
      check(window / rule.ratio < entries.per_slot, "an entry has a place");
      store_row(entry, entries, slot, window / rule.ratio);
    }
  });
  store_rows(x, places, pending, team);
}

void pool_entry_reference(MatrixView<const float> x, std::int64_t w, const PoolRule& rule, const PoolWeights& weights,
                          std::span<double> entry) {
  const std::int64_t window = w * rule.ratio;
  double squares = 0;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    double total = 0;
    double sum = 0;
    for (std::int64_t position = first_pooled(window, rule); position < window + rule.ratio; ++position) {
      const PooledToken token = channels_for(x.row(position).data(), position, window, rule, weights);
      const double weight = std::exp(static_cast<double>(token.gates[i]) + token.bias[i]);
      total += weight;
      sum += weight * token.values[i];
    }
    entry[i] = sum / total;
    squares += entry[i] * entry[i];
  }
  const double root = std::sqrt(squares / static_cast<double>(entry.size()) + rule.eps);
  for (std::size_t i = 0; i < entry.size(); ++i) entry[i] = entry[i] / root * weights.norm[i];
  double* pair = entry.data() + entry.size() - 2 * weights.frequencies.size();
  for (const float frequency : weights.frequencies) {
    const double angle = static_cast<float>(window) * frequency;
    const double a = pair[0];
    pair[0] = a * std::cos(angle) - pair[1] * std::sin(angle);
    pair[1] = pair[1] * std::cos(angle) + a * std::sin(angle);
    pair += 2;
  }
}

}  // namespace qpn8::cpu
#endif
