#include "measure/operator_bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu_backend.hpp"

namespace qpn8 {
namespace {

PlannedProjection planned(const std::string& role, std::int64_t k, std::int64_t n, Route route) {
  PlannedProjection plan;
  plan.name = role;
  plan.tensor.role = role;
  plan.tensor.k = k;
  plan.tensor.n = n;
  plan.route = route;
  plan.padded_n = n;
  return plan;
}

TEST(MeasureOperator, GivesAResultForEveryRouteAndNumberOfRowsWithItsExactBytes) {
  const auto backend = make_cpu_backend({.threads = 2});
  const auto probe = make_probe(backend->hardware(), 2);
  const OperatorOptions options = {
      .rows = {1, 8, 9}, .rotation_bytes = 1 << 16, .repeats = {.warmups = 1, .counted = 2}};
  const PlannedProjection plan = planned("mlp.down_proj", 64, 96, Route::qpn8);
  std::int64_t samples = 0;
  const std::vector<OperatorResult> results =
      measure_operator(*backend, *probe, plan, true, options, [&samples] { ++samples; });
  ASSERT_EQ(results.size(), 6);
  EXPECT_EQ(samples, samples_of_operator(plan, true, options));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const OperatorResult& result = results[i];
    EXPECT_EQ(result.role, "mlp.down_proj");
    EXPECT_EQ(result.k, 64);
    EXPECT_EQ(result.n, 96);
    EXPECT_EQ(result.m, options.rows[i % 3]);
    EXPECT_EQ(result.route, i < 3 ? Route::qpn8 : Route::dense);
    // Codes, a scale a channel and a byte for 32 channels and 16 inputs; or two bytes a weight.
    EXPECT_EQ(result.bytes, i < 3 ? 64 * 96 + 4 * 96 + 3 * 4 : 2 * 64 * 96);
    ASSERT_EQ(result.seconds.size(), 2);
    ASSERT_EQ(result.probe.size(), 2);
    for (const double seconds : result.seconds) EXPECT_GT(seconds, 0);
    for (const double fraction : result.bandwidth_fraction()) EXPECT_GT(fraction, 0);
  }
}

TEST(MeasureOperator, AProjectionThatIsNotOnQpn8IsMeasuredDenseAlone) {
  const auto backend = make_cpu_backend({.threads = 1});
  const auto probe = make_probe(backend->hardware(), 1);
  const OperatorOptions options = {.rows = {1}, .rotation_bytes = 1, .repeats = {.warmups = 0, .counted = 1}};
  const auto results = measure_operator(*backend, *probe, planned("router", 64, 7, Route::dense), false, options);
  ASSERT_EQ(results.size(), 1);
  EXPECT_EQ(results[0].route, Route::dense);
}

TEST(OperatorResult, TheFractionIsThatOfEachRound) {
  OperatorResult result;
  result.bytes = 100;
  result.seconds = {1.0, 2.0};
  result.probe = {200.0, 100.0};
  EXPECT_THAT(result.bandwidth_fraction(), testing::ElementsAre(0.5, 0.5));
}

TEST(DistinctOperators, LayersThatLookAlikeCountOnce) {
  std::vector<PlannedProjection> projections;
  for (int layer = 0; layer < 3; ++layer) {
    projections.push_back(planned("self_attn.o_proj", 64, 64, Route::qpn8));
    projections.push_back(planned("mlp.down_proj", 64, 64, Route::qpn8));
  }
  projections.push_back(planned("mlp.down_proj", 128, 64, Route::qpn8));
  projections.push_back(planned("mlp.down_proj", 128, 64, Route::dense));
  for (std::size_t i = 0; i < projections.size(); ++i) projections[i].name = std::to_string(i);
  const Plan plan(parse_hardware("cpu-portable"), {}, {}, projections);
  std::vector<std::string> names;
  for (const PlannedProjection& projection : distinct_operators(plan)) names.push_back(projection.name);
  EXPECT_THAT(names, testing::ElementsAre("0", "1", "6", "7"));
}

TEST(BeyondCacheOperator, IsAsLargeAsWasAskedAndPackable) {
  const PlannedProjection wide = beyond_cache_operator(planned("x", 48, 64, Route::qpn8), 1'000'000);
  EXPECT_GE(wide.tensor.n * 48, 1'000'000);
  EXPECT_LT(wide.tensor.n * 48, 1'000'000 + 32 * 48);
  EXPECT_EQ(shape_refusal(wide.tensor.k, wide.tensor.n), "");
  EXPECT_EQ(wide.tensor.role, kBeyondCacheRole);
  EXPECT_GE(default_rotation_bytes(parse_hardware("cpu-portable")), 2 * last_level_cache_bytes());
}

}  // namespace
}  // namespace qpn8
