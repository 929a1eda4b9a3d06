#include "kernels/cpu/mean_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/row_cases.hpp"
#include "support/isas.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;

constexpr std::int64_t kPoolTokens = 61;
constexpr std::int64_t kPoolWidth = 22;

/// Entries of the sequence of slot 1 after calls of `chunk` tokens.
StoredRows pooled_means(const Matrix<float>& x, const MeanPoolRule& rule, std::int64_t chunk, int threads) {
  StoredRows pending(DType::f32, 2, rule.ratio, kPoolWidth);
  StoredRows entries(DType::f32, 2, kPoolTokens + 1, kPoolWidth);
  Matrix<float> scratch(kPoolTokens, kPoolWidth);
  ThreadTeam team(threads);
  for (std::int64_t first = 0; first < kPoolTokens; first += chunk) {
    const std::int64_t rows = std::min(chunk, kPoolTokens - first);
    Places places;
    places.add(1, static_cast<std::int32_t>(first), static_cast<std::int32_t>(rows));
    mean_pool(x.view().row_range(first, rows), places.view(), rule, pending.store(), entries.store(), scratch.view(),
              team);
  }
  return entries;
}

TEST(MeanPool, EntriesAreTheFormulasHoweverTokensAreSpreadOverCalls) {
  for_each_isa([] {
    const Matrix<float> x = gaussian(kPoolTokens, kPoolWidth, 1, 2.0F);
    const Matrix<float> norm = gaussian(1, kPoolWidth, 2);
    const Matrix<float> frequencies = gaussian(1, 4, 3, 0.1F);
    for (const std::int64_t ratio : {1, 4, 16}) {
      const MeanPoolRule rule = {
          .ratio = ratio, .eps = 1e-6F, .norm = norm.view().row(0), .frequencies = frequencies.view().row(0)};
      const StoredRows whole = pooled_means(x, rule, kPoolTokens, 2);
      for (std::int64_t w = 0; w < kPoolTokens / ratio; ++w) {
        std::vector<double> expected(kPoolWidth);
        mean_pool_reference(x.view(), w, rule, expected);
        for (std::int64_t i = 0; i < kPoolWidth; ++i) {
          ASSERT_NEAR(value_at(whole.store(), 1, w, i), expected[static_cast<std::size_t>(i)], 2e-5)
              << ratio << " " << w;
          for (const std::int64_t chunk : {1, 5, 33}) {
            ASSERT_EQ(value_at(pooled_means(x, rule, chunk, 1).store(), 1, w, i), value_at(whole.store(), 1, w, i));
          }
        }
      }
      EXPECT_EQ(value_at(whole.store(), 1, kPoolTokens / ratio, 0), 0.0F)
          << "nothing is made of a block that is not full";
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
