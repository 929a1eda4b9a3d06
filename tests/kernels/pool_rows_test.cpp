#include "kernels/cpu/pool_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/row_cases.hpp"
#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;

constexpr std::int64_t kTokens = 61;
constexpr std::int64_t kWidth = 22;
constexpr std::int64_t kEntries = 64;

/// A pooling with weights of its own, and the entries of one sequence.
struct Case {
  explicit Case(std::int64_t ratio, bool overlaps)
      : rule{.ratio = ratio, .overlaps = overlaps, .eps = 1e-6F},
        channels(overlaps ? 2 * kWidth : kWidth),
        x(gaussian(kTokens, 2 * channels, 1, 2.0F)),
        gate_bias(gaussian(ratio, channels, 2)),
        norm(gaussian(1, kWidth, 3)),
        frequencies(gaussian(1, 4, 4, 0.1F)) {}

  PoolWeights weights() const { return {gate_bias.view(), norm.view().row(0), frequencies.view().row(0)}; }

  /// Entries after calls of `chunk` tokens each, behind another sequence's tokens.
  StoredRows entries(std::int64_t chunk, int threads) const {
    StoredRows pending(DType::f32, 2, rule.ratio * (rule.overlaps ? 2 : 1), 2 * channels);
    StoredRows pooled(DType::f32, 2, kEntries, kWidth);
    const Matrix<float> other = gaussian(3, 2 * channels, 5);
    Matrix<float> scratch(kTokens + 3, kWidth);
    ThreadTeam team(threads);
    for (std::int64_t first = 0; first < kTokens; first += chunk) {
      const std::int64_t rows = std::min(chunk, kTokens - first);
      Matrix<float> batch(3 + rows, 2 * channels);
      std::copy(other.values().begin(), other.values().end(), batch.values().begin());
      const auto begin = x.values().begin() + static_cast<std::ptrdiff_t>(first * x.cols());
      std::copy(begin, begin + static_cast<std::ptrdiff_t>(rows * x.cols()),
                batch.values().begin() + static_cast<std::ptrdiff_t>(other.values().size()));
      Places places;
      places.add(0, static_cast<std::int32_t>(first), 3);
      places.add(1, static_cast<std::int32_t>(first), static_cast<std::int32_t>(rows));
      pool_rows(batch.view(), places.view(), rule, weights(), pending.store(), pooled.store(), scratch.view(), team);
    }
    return pooled;
  }

  PoolRule rule;
  std::int64_t channels;
  Matrix<float> x;
  Matrix<float> gate_bias;
  Matrix<float> norm;
  Matrix<float> frequencies;
};

TEST(PoolRows, EntriesAreTheFormulasHoweverTokensAreSpreadOverCalls) {
  for_each_isa([] {
    for (const auto& [ratio, overlaps] : {std::pair(4, true), std::pair(16, false), std::pair(1, true)}) {
      const Case c(ratio, overlaps);
      const StoredRows whole = c.entries(kTokens, 1);
      for (std::int64_t w = 0; w < kTokens / ratio; ++w) {
        std::vector<double> expected(kWidth);
        pool_entry_reference(c.x.view(), w, c.rule, c.weights(), expected);
        for (std::int64_t i = 0; i < kWidth; ++i) {
          ASSERT_NEAR(value_at(whole.store(), 1, w, i), expected[static_cast<std::size_t>(i)], 2e-5)
              << "ratio " << ratio << " entry " << w << " channel " << i;
        }
      }
      for (const std::int64_t chunk : {1, 3, 5, 33}) {
        const StoredRows split = c.entries(chunk, 2);
        for (std::int64_t w = 0; w < kTokens / ratio; ++w) {
          for (std::int64_t i = 0; i < kWidth; ++i) {
            ASSERT_EQ(value_at(split.store(), 1, w, i), value_at(whole.store(), 1, w, i))
                << "chunk " << chunk << " entry " << w;
          }
        }
      }
    }
  });
}

TEST(PoolRows, NothingIsMadeOfAWindowThatIsNotFull) {
  const Case c(16, false);
  const StoredRows pooled = c.entries(kTokens, 1);
  for (std::int64_t i = 0; i < kWidth; ++i) EXPECT_EQ(value_at(pooled.store(), 1, kTokens / 16, i), 0.0F);
}

}  // namespace
}  // namespace qpn8::cpu
