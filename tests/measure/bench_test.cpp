#include "measure/bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/bars.hpp"
#include "support/expect_error.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

const std::filesystem::path kModel = test::data() / "tiny-qwen3";

EngineOptions engine(const std::string& qpn8 = "on") {
  EngineOptions options;
  options.apply({{"qpn8", qpn8}, {"threads", 2}});
  return options;
}

BenchOptions quick() {
  BenchOptions options;
  options.rows = {1, 8};
  options.contexts = {4};
  options.prefill_tokens = 8;
  options.rotation_bytes = 1 << 16;
  options.repeats = {.warmups = 1, .counted = 2};
  return options;
}

TEST(BenchModel, MeasuresEveryPartOnBothRoutes) {
  BenchOptions options = quick();
  options.growth_model = kModel;
  std::int64_t last = 0;
  std::int64_t last_total = 0;
  const BenchResult result = bench_model(kModel, engine(), options, [&](std::int64_t done, std::int64_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
    last_total = total;
  });
  EXPECT_EQ(last, last_total);
  ASSERT_EQ(result.decode.size(), 2);
  EXPECT_EQ(result.decode[0].route, Route::qpn8);
  EXPECT_EQ(result.decode[1].route, Route::dense);
  for (const DecodeResult& decode : result.decode) {
    EXPECT_EQ(decode.context, 4);
    EXPECT_EQ(decode.seconds.size(), 2);
    EXPECT_EQ(decode.bytes.size(), 2);
    EXPECT_EQ(decode.probe.size(), 2);
  }
  EXPECT_LT(result.decode[0].bytes[0], result.decode[1].bytes[0]);
  ASSERT_EQ(result.prefill.size(), 2);
  ASSERT_EQ(result.load.size(), 2);
  EXPECT_EQ(result.load[0].loads.size(), 2);
  ASSERT_TRUE(result.growth);
  EXPECT_EQ(result.growth->small.bytes, result.growth->large.bytes) << "it was compared with itself";
  EXPECT_EQ(result.operators.front().role, kBeyondCacheRole);
  EXPECT_EQ(result.plan["summary"]["qpn8"].get<int>() + result.plan["summary"]["dense"].get<int>(), 17);
  EXPECT_THAT(result.notes, testing::IsEmpty());
  EXPECT_TRUE(fits_cache(result));
  BenchResult beyond_cache = result;
  beyond_cache.cache_bytes = 0;
  EXPECT_EQ(bars_of(beyond_cache).size(), 11) << "all but that of a second context";
}

// A step's bytes are those of its weights and of the keys and values of the 8 steps of a sample, on average.
TEST(BenchModel, BytesOfAStepAreTheMeanOfTheSamplesSteps) {
  BenchOptions options = quick();
  options.operators = options.prefill = options.load = false;
  const BenchResult result = bench_model(kModel, engine("off"), options);
  ASSERT_EQ(result.decode.size(), 1);
  constexpr double kWeights = 4980736;
  constexpr double kKvBytesAToken = 2048;
  // After 4 tokens of prompt and 8 steps of warm-up: contexts 13 to 20, then 21 to 28.
  EXPECT_EQ(result.decode[0].bytes[0], kWeights + 16.5 * kKvBytesAToken);
  EXPECT_EQ(result.decode[0].bytes[1], kWeights + 24.5 * kKvBytesAToken);
}

TEST(BenchModel, WhatTheModelHasNoRoomForIsLeftOutWithANote) {
  BenchOptions options = quick();
  options.operators = options.load = false;
  options.contexts = {4, 500};
  options.prefill_tokens = 512;
  const BenchResult result = bench_model(kModel, engine(), options);
  EXPECT_EQ(result.decode.size(), 2);
  EXPECT_THAT(result.prefill, testing::IsEmpty());
  EXPECT_THAT(result.notes,
              testing::UnorderedElementsAre(testing::HasSubstr("decode at a context of 500: left out, 524 positions"),
                                            testing::HasSubstr("prefill of 512 tokens: left out")));
}

TEST(BenchModel, ErrorsAreThoseOfTheEngine) {
  test::expect_error(
      Error::bad_file, [] { bench_model("/nowhere", engine(), quick()); }, testing::HasSubstr("/nowhere"));
}

TEST(BenchShapes, MeasuresOperatorsAlone) {
  ProjectionDesc packed;
  packed.name = "a";
  packed.tensor = {.role = "mlp.down_proj", .k = 64, .n = 64};
  ProjectionDesc refused;
  refused.name = "b";
  refused.tensor = {.role = "mlp.down_proj", .k = 64, .n = 63};
  const BenchResult result = bench_shapes({packed, refused}, engine(), quick());
  EXPECT_EQ(result.operators.size(), 2 + 4 + 2) << "beyond the cache, both routes, dense alone";
  EXPECT_THAT(result.decode, testing::IsEmpty());
}

}  // namespace
}  // namespace qpn8
