#include "base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace qpn8 {
namespace {

TEST(Random, GivesThePublishedSequenceOfSplitMix64) {
  Random random(1234567);
  for (const std::uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                       4593380528125082431U, 16408922859458223821U}) {
    EXPECT_EQ(random.next(), expected);
  }
}

TEST(Random, BelowStaysBelowAndReachesEveryValueAboutEquallyOften) {
  Random random(3);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, ShuffleKeepsTheElementsAndFollowsTheSeed) {
  std::vector<int> first(100);
  std::iota(first.begin(), first.end(), 0);
  std::vector<int> second = first;
  const std::vector<int> sorted = first;
  Random a(5);
  Random b(5);
  shuffle(first, a);
  shuffle(second, b);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, sorted);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, sorted);
}

}  // namespace
}  // namespace qpn8
