#include "measure/samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace qpn8 {
namespace {

using ::testing::ElementsAre;

TEST(MeasureAlternating, EveryRoundTakesOneSampleOfEachAndEverySecondGoesBackwards) {
  std::string order;
  const std::vector<std::function<double()>> candidates = {[&] {
                                                             order += 'a';
                                                             return static_cast<double>(order.size());
                                                           },
                                                           [&] {
                                                             order += 'b';
                                                             return static_cast<double>(order.size());
                                                           }};
  int seen = 0;
  const std::vector<Samples> samples =
      measure_alternating(candidates, {.warmups = 1, .counted = 2}, [&seen] { ++seen; });
  EXPECT_EQ(order, "abbaab");
  EXPECT_EQ(seen, 6) << "warm-ups are work too";
  EXPECT_THAT(samples, ElementsAre(ElementsAre(4, 5), ElementsAre(3, 6))) << "the first round is a warm-up";
}

TEST(Samples, RatiosAreThoseOfTheSameRound) {
  EXPECT_THAT(ratios(Samples{2, 9}, Samples{4, 3}), ElementsAre(0.5, 3));
  EXPECT_THAT(rates(12, Samples{2, 3}), ElementsAre(6, 4));
}

// A machine that is twice as slow for one of three rounds changes neither ratio.
TEST(Samples, ASlowRoundDoesNotChangeTheMedianRatio) {
  const Samples a = {1, 2, 1};
  const Samples b = {4, 8, 4};
  EXPECT_EQ(median(ratios(b, a)), 4);
}

TEST(Samples, SecondsOfABodyAreNotNegative) {
  int calls = 0;
  EXPECT_GE(seconds_of([&calls] { ++calls; }), 0);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace qpn8
