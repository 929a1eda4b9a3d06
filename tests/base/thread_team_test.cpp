#include "qpn8/thread_team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

TEST(ThreadTeam, EveryMemberRunsOnceAndRunWaitsForAll) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadTeam team(threads);
    ASSERT_EQ(team.size(), threads);
    for (int repeat = 0; repeat < 200; ++repeat) {
      std::vector<int> calls(static_cast<std::size_t>(threads), 0);
      team.run([&](int member) { ++calls[static_cast<std::size_t>(member)]; });
      EXPECT_EQ(calls, std::vector<int>(static_cast<std::size_t>(threads), 1));
    }
  }
}

TEST(ThreadTeam, MembersThatWentToSleepAreWokenAgain) {
  ThreadTeam team(3);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::atomic<int> calls{0};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    team.run([&](int) { ++calls; });
    EXPECT_EQ(calls, 3);
  }
}

TEST(ThreadTeam, RangesCoverEverythingOnceWithBordersOnTheGrain) {
  ThreadTeam team(3);
  for (std::int64_t count : {0, 1, 7, 32, 33, 96, 1000}) {
    std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
    team.for_ranges(count, 32, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(begin % 32, 0);
      EXPECT_TRUE(end % 32 == 0 || end == count);
      for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit, 1) << count;
  }
}

TEST(ThreadTeam, SharedRangesCoverEverythingOnceInGrains) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadTeam team(threads);
    for (const std::int64_t count : {0, 1, 5, 64, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      team.for_shared_ranges(count, 4, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_EQ(begin % 4, 0);
        EXPECT_TRUE(end == begin + 4 || end == count);
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const auto& visit : visits) EXPECT_EQ(visit, 1);
    }
  }
}

TEST(ThreadTeam, WhatASlowMemberHasLeftIsTakenByTheOthers) {
  ThreadTeam team(2);
  std::atomic<int> done{0};
  // Whoever gets the first block waits until all the others are done: no more than its own is left for it.
  team.for_shared_ranges(100, 1, [&](std::int64_t begin, std::int64_t) {
    while (begin == 0 && done < 99) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(done, 100);
}

TEST(ThreadTeam, AnExceptionOfAMemberReachesTheCallerAndTheTeamGoesOn) {
  ThreadTeam team(3);
  EXPECT_THROW(team.run([](int member) {
    if (member == 2) throw std::runtime_error("planted");
  }),
               std::runtime_error);
  std::atomic<int> calls{0};
  team.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(ThreadTeam, NoThreadsIsRefused) { EXPECT_THROW(ThreadTeam(0), Error); }

}  // namespace
}  // namespace qpn8
