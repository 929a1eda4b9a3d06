#include "kernels/cpu/causal_conv.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/row_cases.hpp"
#include "support/isas.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;

constexpr std::int64_t kTokens = 40;
constexpr std::int64_t kChannels = 530;  // more than a task takes, and no whole vectors

/// The sequence of slot 1 in calls of `chunk` tokens, each behind two of another sequence. Memory holds rubbish before.
Matrix<float> convolved(const Matrix<float>& x, const Matrix<float>& weights, std::int64_t dilation, std::int64_t chunk,
                        int threads) {
  StoredRows history(DType::f32, 2, std::max<std::int64_t>(dilation * (weights.rows() - 1), 1), kChannels);
  const Matrix<float> rubbish = gaussian(2 * history.store().per_slot, kChannels, 9);
  for (std::int64_t i = 0; i < rubbish.rows(); ++i) {
    history.set(i / history.store().per_slot, i % history.store().per_slot, rubbish, i);
  }
  ThreadTeam team(threads);
  Matrix<float> result(kTokens, kChannels);
  for (std::int64_t first = 0; first < kTokens; first += chunk) {
    const std::int64_t rows = std::min(chunk, kTokens - first);
    Matrix<float> batch = gaussian(2 + rows, kChannels, 8);
    for (std::int64_t t = 0; t < rows; ++t) std::ranges::copy(x.view().row(first + t), batch.view().row(2 + t).begin());
    Places places;
    places.add(0, static_cast<std::int32_t>(first), 2);
    places.add(1, static_cast<std::int32_t>(first), static_cast<std::int32_t>(rows));
    Matrix<float> out(2 + rows, kChannels);
    causal_conv(batch.view(), places.view(), weights.view(), dilation, history.store(), out.view(), team);
    for (std::int64_t t = 0; t < rows; ++t)
      std::ranges::copy(out.view().row(2 + t), result.view().row(first + t).begin());
  }
  return result;
}

TEST(CausalConv, IsTheFormulaHoweverTokensAreSpreadOverCalls) {
  for_each_isa([] {
    for (const auto& [taps, dilation] : {std::pair(4, 1), std::pair(4, 3), std::pair(1, 1), std::pair(16, 2)}) {
      const Matrix<float> x = gaussian(kTokens, kChannels, 1);
      const Matrix<float> weights = gaussian(taps, kChannels, 2);
      Matrix<double> expected(kTokens, kChannels);
      causal_conv_reference(x.view(), weights.view(), dilation, expected.view());
      const Matrix<float> whole = convolved(x, weights, dilation, kTokens, 1);
      EXPECT_LE(relative_l2(whole.view(), expected.view()), 1e-6) << taps << " taps, dilation " << dilation;
      for (const std::int64_t chunk : {1, 2, 7, 33}) {
        EXPECT_TRUE(same_bits<float>(convolved(x, weights, dilation, chunk, 3).view(), whole.view())) << chunk;
      }
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
