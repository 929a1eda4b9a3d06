#include "kernels/cpu/route_experts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::same_bits;

struct Routed {
  Matrix<std::int32_t> ids;
  Matrix<float> weights;
};

Routed route(const Matrix<float>& logits, std::int64_t count, bool normalise, int threads = 1) {
  Routed routed{Matrix<std::int32_t>(logits.rows(), count), Matrix<float>(logits.rows(), count)};
  ThreadTeam team(threads);
  route_experts(logits.view(), normalise, routed.ids.view(), routed.weights.view(), team);
  return routed;
}

Matrix<float> row_of(std::initializer_list<float> values) {
  Matrix<float> row(1, static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), row.values().begin());
  return row;
}

TEST(RouteExperts, IsTheTopOfTheSoftmaxForAnyNumberOfExperts) {
  for_each_isa([] {
    for (const std::int64_t experts : {1, 4, 7, 60, 128, 513}) {
      const Matrix<float> logits = gaussian(20, experts, 3, 3.0F);
      for (const std::int64_t count : {std::int64_t{1}, std::min<std::int64_t>(8, experts), experts}) {
        for (const bool normalise : {false, true}) {
          const Routed routed = route(logits, count, normalise);
          Matrix<std::int32_t> ids(20, count);
          Matrix<double> weights(20, count);
          route_experts_reference(logits.view(), normalise, ids.view(), weights.view());
          EXPECT_TRUE(same_bits<std::int32_t>(routed.ids.view(), ids.view())) << experts << " " << count;
          for (std::size_t i = 0; i < weights.values().size(); ++i) {
            EXPECT_NEAR(routed.weights.values()[i], weights.values()[i], 2e-6 * weights.values()[i]);
          }
        }
      }
    }
  });
}

TEST(RouteExperts, TiesGoToTheLowerId) {
  for_each_isa([] {
    const Routed routed = route(row_of({1.0F, 2.0F, 0.0F, 2.0F, 1.0F, -0.0F, 1.0F}), 6, false);
    const std::vector<std::int32_t> expected = {1, 3, 0, 4, 6, 2};
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), routed.ids.values().begin()));
  });
}

TEST(RouteExperts, LargeLogitsDoNotOverflow) {
  for_each_isa([] {
    const Routed routed = route(row_of({3e38F, -3e38F, 3e38F}), 2, true);
    EXPECT_EQ(routed.ids(0, 0), 0);
    EXPECT_EQ(routed.ids(0, 1), 2);
    EXPECT_FLOAT_EQ(routed.weights(0, 0), 0.5F);
    EXPECT_FLOAT_EQ(routed.weights(0, 1), 0.5F);
  });
}

TEST(RouteExperts, NanGivesNanWeightsOfDistinctExpertsInRange) {
  const float nan = std::nanf("");
  for_each_isa([&] {
    for (const Matrix<float>& logits : {row_of({nan, nan, nan, nan}), row_of({0.0F, nan, 1.0F, -nan})}) {
      const Routed routed = route(logits, 3, true);
      std::set<std::int32_t> ids(routed.ids.values().begin(), routed.ids.values().end());
      EXPECT_EQ(ids.size(), 3U);
      EXPECT_GE(*ids.begin(), 0);
      EXPECT_LT(*ids.rbegin(), 4);
      for (const float weight : routed.weights.values()) EXPECT_TRUE(std::isnan(weight));
    }
  });
}

TEST(RouteExperts, BitsDoNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    const Matrix<float> logits = gaussian(300, 64, 5);
    const Routed one = route(logits, 4, true, 1);
    for (const int threads : {2, 3}) {
      const Routed many = route(logits, 4, true, threads);
      EXPECT_TRUE(same_bits<std::int32_t>(one.ids.view(), many.ids.view()));
      EXPECT_TRUE(same_bits<float>(one.weights.view(), many.weights.view()));
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
