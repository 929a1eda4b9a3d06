#include "qpn8/schedule.hpp"

#include <gtest/gtest.h>

namespace qpn8 {
namespace {

TEST(Schedule, PrintsItsThreeParts) {
  EXPECT_EQ(to_string(Schedule{16, 2, false}), "(split 16, chains 2, no prefetch)");
  EXPECT_EQ(to_string(Schedule{1, 4, true}), "(split 1, chains 4, prefetch)");
}

TEST(Schedule, EverySplitThatDividesTheGroupsOfKIsServed) {
  for (int split : {1, 2, 4, 5, 10, 20}) EXPECT_EQ(schedule_refusal(Schedule{split, 1, false}, 320), "") << split;
  for (int chains : {1, 2, 4}) EXPECT_EQ(schedule_refusal(Schedule{1, chains, false}, 320), "") << chains;
}

TEST(Schedule, OneThatServesNoSuchShapeIsRefusedWithTheReason) {
  EXPECT_EQ(schedule_refusal(Schedule{12, 1, false}, 320),
            "schedule (split 12, chains 1, no prefetch): K=320 has 20 groups of 16, and split_k must divide them");
  EXPECT_EQ(schedule_refusal(Schedule{1, 3, false}, 320),
            "schedule (split 1, chains 3, no prefetch): accumulator_chains must be 1, 2 or 4");
  EXPECT_NE(schedule_refusal(Schedule{0, 1, false}, 320), "");
  EXPECT_NE(schedule_refusal(Schedule{-1, 1, false}, 320), "");
  EXPECT_NE(schedule_refusal(Schedule{1, 0, false}, 320), "");
}

}  // namespace
}  // namespace qpn8
