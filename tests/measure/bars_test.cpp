#include "measure/bars.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "measure/bench_output.hpp"

namespace qpn8 {
namespace {

using ::testing::DoubleNear;

OperatorResult beyond_cache(std::int64_t m, double seconds) {
  return {.role = kBeyondCacheRole,
          .k = 64,
          .n = 64,
          .m = m,
          .route = Route::qpn8,
          .bytes = 90,
          .seconds = {seconds, 2 * seconds, seconds},
          .probe = {100, 50, 100}};
}

DecodeResult decode(Route route, std::int64_t context, double seconds, double bytes) {
  return {.route = route,
          .context = context,
          .seconds = Samples(3, seconds),
          .bytes = Samples(3, bytes),
          .probe = Samples(3, 100)};
}

PrefillResult prefill(Route route, double seconds) {
  return {.route = route, .tokens = 512, .flop = 60, .seconds = Samples(3, seconds), .peak = Samples(3, 100)};
}

/// Every figure is just good enough.
BenchResult good_run() {
  BenchResult result;
  result.operators = {beyond_cache(1, 1), beyond_cache(8, 2)};
  result.decode = {decode(Route::qpn8, 128, 1.0, 80), decode(Route::dense, 128, 1.6, 150),
                   decode(Route::qpn8, 4096, 1.5, 120), decode(Route::dense, 4096, 2.0, 190)};
  result.prefill = {prefill(Route::qpn8, 1.0), prefill(Route::dense, 0.96)};
  LoadResult load;
  load.seconds = 1.0;
  load.weights_seconds = 0.5;
  load.peak_rss_bytes = 300'000'000;
  load.weight_bytes = 100'000'000;
  load.checkpoint_bytes = 1'000'000'000;
  load.threads = 2;
  result.load = {{Route::qpn8, {load}}, {Route::dense, {load}}};
  result.growth = GrowthResult{decode(Route::qpn8, 128, 0.5, 40), decode(Route::qpn8, 128, 1.0, 80)};
  return result;
}

std::vector<int> failed(const BenchResult& result) {
  std::vector<int> numbers;
  for (const Bar& bar : bars_of(result)) {
    if (!bar.holds()) numbers.push_back(bar.number);
  }
  return numbers;
}

TEST(Bars, AllHoldWhereEveryFigureIsGoodEnough) {
  std::vector<int> numbers;
  for (const Bar& bar : bars_of(good_run())) numbers.push_back(bar.number);
  EXPECT_THAT(numbers, testing::ElementsAre(1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5));
  EXPECT_THAT(failed(good_run()), testing::IsEmpty());
}

TEST(Bars, AreRatiosOfTheSameRound) {
  const std::vector<Bar> bars = bars_of(good_run());
  EXPECT_THAT(bars[0].seen, DoubleNear(0.9, 1e-9)) << "the slow round's probe was slow too";
  EXPECT_THAT(bars[1].seen, DoubleNear(2.0, 1e-9));
  EXPECT_THAT(bars[2].seen, DoubleNear(0.8, 1e-9));
  EXPECT_THAT(bars[3].seen, DoubleNear(1.6, 1e-9));
  EXPECT_THAT(bars[4].seen, DoubleNear(0.6, 1e-9));
  EXPECT_THAT(bars[6].seen, DoubleNear(0.96, 1e-9));
  EXPECT_THAT(bars[7].seen, DoubleNear(1.0, 1e-9)) << "a GB in half a second by two cores";
  EXPECT_THAT(bars[8].seen, DoubleNear(1.0, 1e-9));
  EXPECT_THAT(bars[10].seen, DoubleNear(1.0, 1e-9)) << "twice the bytes in twice the time";
  EXPECT_THAT(bars[11].seen, DoubleNear(1.0, 1e-9)) << "half as many bytes more in half as much time more";
}

TEST(Bars, EachFailsByItself) {
  BenchResult run = good_run();
  run.operators[0].bytes = 70;
  EXPECT_THAT(failed(run), testing::ElementsAre(1));
  run = good_run();
  run.operators[1].seconds = {2.2, 4.4, 2.2};
  EXPECT_THAT(failed(run), testing::ElementsAre(1));
  run = good_run();
  run.decode[1].seconds = Samples(3, 1.5);
  EXPECT_THAT(failed(run), testing::ElementsAre(2));
  run = good_run();
  run.decode[0].probe = Samples(3, 120);
  EXPECT_THAT(failed(run), testing::ElementsAre(2));
  run = good_run();
  run.prefill[1].seconds = Samples(3, 0.9);
  EXPECT_THAT(failed(run), testing::ElementsAre(3));
  run = good_run();
  run.load[1].loads[0].peak_rss_bytes = 320'000'000;
  EXPECT_THAT(failed(run), testing::ElementsAre(4));
  run = good_run();
  run.load[0].loads[0].weights_seconds = 0.6;
  EXPECT_THAT(failed(run), testing::ElementsAre(4));
  run = good_run();
  run.growth->large.seconds = Samples(3, 1.2);
  EXPECT_THAT(failed(run), testing::ElementsAre(5));
  run = good_run();
  run.decode[2].seconds = Samples(3, 1.7);
  EXPECT_THAT(failed(run), testing::ElementsAre(5));
}

TEST(Bars, WhatWasNotMeasuredHasNone) {
  EXPECT_THAT(bars_of(BenchResult{}), testing::IsEmpty());
  BenchResult dense_alone;
  dense_alone.decode = {decode(Route::dense, 128, 1.0, 80)};
  EXPECT_THAT(bars_of(dense_alone), testing::IsEmpty());
}

TEST(Bars, AModelThatFitsTheCacheHasThoseOfTheOperatorsAlone) {
  BenchResult run = good_run();
  run.cache_bytes = 80;
  EXPECT_EQ(bars_of(run).size(), bars_of(good_run()).size()) << "a step reads 80 bytes";
  run.cache_bytes = 81;
  const std::vector<Bar> bars = bars_of(run);
  EXPECT_TRUE(std::all_of(bars.begin(), bars.end(), [](const Bar& bar) { return bar.number == 1; }));
  EXPECT_EQ(bars.size(), 2U);
  EXPECT_THAT(to_table(run), testing::HasSubstr("in cache"));
  EXPECT_THAT(to_table(run), testing::HasSubstr("no bars but the operators'"));
}

TEST(BenchOutput, ShowsEveryBarWithWhatWasSeen) {
  BenchResult run = good_run();
  run.notes.emplace_back("a context was left out");
  const std::string table = to_table(run);
  for (const char* part :
       {"OPERATOR", "DECODE", "PREFILL", "LOAD", "MUST BE", ">= 0.80", "<= 2.00", "note: a context"}) {
    EXPECT_THAT(table, testing::HasSubstr(part));
  }
  EXPECT_THAT(table, testing::Not(testing::HasSubstr("NO\n")));
  run.operators[0].bytes = 70;
  EXPECT_THAT(to_table(run), testing::HasSubstr("NO\n"));
}

TEST(BenchOutput, JsonHasTheKeysThatProgramsRelyOn) {
  const auto json = to_json(good_run());
  for (const char* key : {"read_gb_per_s", "operators", "decode", "prefill", "load_s", "peak_rss_mb", "bars"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  for (const char* key : {"role", "k", "n", "m", "route", "us", "gb_per_s"}) {
    EXPECT_TRUE(json["operators"][0].contains(key)) << key;
  }
  for (const char* key : {"route", "tokens_per_s", "bytes_per_token", "bandwidth_fraction"}) {
    EXPECT_TRUE(json["decode"][0].contains(key)) << key;
  }
  for (const char* key : {"route", "tokens", "tokens_per_s"}) EXPECT_TRUE(json["prefill"][0].contains(key)) << key;
  EXPECT_EQ(json["load_s"]["qpn8"], 1.0);
  EXPECT_EQ(json["peak_rss_mb"]["dense"], 300.0);
  EXPECT_EQ(json["decode"][0]["bytes_per_token"], 80);
  EXPECT_EQ(json["operators"][0]["us"], 1e6);
}

}  // namespace
}  // namespace qpn8
