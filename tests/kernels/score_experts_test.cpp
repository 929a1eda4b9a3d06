#include "kernels/cpu/score_experts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::gaussian;

TEST(ScoreExperts, AreTheTopOfScorePlusBiasWeighedWithoutIt) {
  for (const std::int64_t experts : {1, 7, 256}) {
    const Matrix<float> logits = gaussian(30, experts, 1, 4.0F);
    const Matrix<float> bias = gaussian(1, experts, 2);
    for (const bool biased : {false, true}) {
      for (const std::int64_t count : {std::int64_t{1}, std::min<std::int64_t>(6, experts)}) {
        ScoreRule rule{.bias = {}, .ids_given = false, .scale = 1.5F};
        if (biased) rule.bias = bias.view().row(0);
        Matrix<std::int32_t> ids(30, count);
        Matrix<float> weights(30, count);
        Matrix<std::int32_t> expected_ids(30, count);
        Matrix<double> expected(30, count);
        ThreadTeam team(3);
        score_experts(logits.view(), rule, ids.view(), weights.view(), team);
        score_experts_reference(logits.view(), rule, expected_ids.view(), expected.view());
        EXPECT_TRUE(test::same_bits<std::int32_t>(ids.view(), expected_ids.view())) << experts << " " << biased;
        EXPECT_LE(test::relative_l2(weights.view(), expected.view()), 1e-6) << experts << " " << biased;
      }
    }
  }
}

TEST(ScoreExperts, ThatAreGivenAreOnlyWeighed) {
  const Matrix<float> logits = gaussian(1, 8, 3);
  Matrix<std::int32_t> ids(1, 3);
  ids(0, 0) = 5;
  ids(0, 1) = 0;
  ids(0, 2) = 7;
  Matrix<float> weights(1, 3);
  ThreadTeam team(1);
  score_experts(logits.view(), {.bias = {}, .ids_given = true, .scale = 2.0F}, ids.view(), weights.view(), team);
  EXPECT_EQ(ids(0, 0), 5);
  EXPECT_EQ(ids(0, 2), 7);
  EXPECT_NEAR(weights(0, 0) + weights(0, 1) + weights(0, 2), 2.0, 1e-6);
  const double ratio = std::sqrt(std::log1p(std::exp(logits(0, 5)))) / std::sqrt(std::log1p(std::exp(logits(0, 7))));
  EXPECT_NEAR(weights(0, 0) / weights(0, 2), ratio, 1e-6);
}

TEST(ScoreExperts, ExtremeLogitsStayFiniteAndNanShows) {
  Matrix<float> logits(2, 4);
  const float nan = std::nanf("");
  const std::vector<float> values = {3e38F, -3e38F, 200.0F, -200.0F, nan, 1.0F, nan, 0.0F};
  std::copy(values.begin(), values.end(), logits.values().begin());
  Matrix<std::int32_t> ids(2, 3);
  Matrix<float> weights(2, 3);
  ThreadTeam team(1);
  score_experts(logits.view(), {}, ids.view(), weights.view(), team);
  EXPECT_EQ(ids(0, 0), 0);
  EXPECT_EQ(ids(0, 1), 2);
  for (const float weight : weights.view().row(0)) EXPECT_TRUE(std::isfinite(weight));
  const std::set<std::int32_t> distinct(ids.view().row(1).begin(), ids.view().row(1).end());
  EXPECT_EQ(distinct.size(), 3U);
  for (const float weight : weights.view().row(1)) EXPECT_TRUE(std::isnan(weight));
}

}  // namespace
}  // namespace qpn8::cpu
