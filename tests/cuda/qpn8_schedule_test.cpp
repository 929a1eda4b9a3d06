#include "kernels/cuda/qpn8_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "qpn8/error.hpp"

namespace qpn8::cuda {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const DeviceLimits kHopper;
const DeviceLimits kAmpere = {.compute_capability = 80,
                              .multiprocessors = 108,
                              .block_shared_bytes = 163 * 1024,
                              .multiprocessor_shared_bytes = 164 * 1024};

/// A straight walk over what a legal packed weight may be.
std::vector<LinearShape> shapes() {
  std::vector<LinearShape> result;
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t k = 16 * (1 + static_cast<std::int64_t>(random() % 900));
    const std::int64_t n = 32 * (1 + static_cast<std::int64_t>(random() % 900));
    result.push_back({.k = k, .n = n, .groups = random() % 4 == 0 ? 3 : 1});
  }
  result.push_back({.k = 16, .n = 32});
  result.push_back({.k = 16, .n = 151936});
  result.push_back({.k = 12288, .n = 32});
  result.push_back({.k = 320, .n = 10240});
  return result;
}

TEST(Qpn8Schedule, EveryLegalShapeHasALegalScheduleForSomeRows) {
  for (const DeviceLimits& device : {kHopper, kAmpere}) {
    for (const LinearShape& shape : shapes()) {
      const int most = rows_that_fit(shape, device);
      ASSERT_GE(most, 1) << shape.k << "x" << shape.n;
      for (const int rows : {1, 8, 16}) {
        const auto schedule = choose_schedule(shape, rows, device);
        if (rows > most) continue;
        ASSERT_TRUE(schedule.has_value()) << shape.k << "x" << shape.n << " rows " << rows;
        EXPECT_THAT(schedule_refusal(shape, schedule->shape, rows, device), IsEmpty());
        EXPECT_FALSE(schedule->reason.empty());
      }
    }
  }
}

TEST(Qpn8Schedule, TheOrderOfASumNeverDependsOnTheRows) {
  for (const LinearShape& shape : shapes()) {
    const auto one = choose_schedule(shape, 1, kHopper);
    for (const int rows : {2, 8, 16}) {
      const auto more = choose_schedule(shape, rows, kHopper);
      if (!more) continue;
      EXPECT_EQ(more->shape.split, one->shape.split) << shape.k << "x" << shape.n;
      EXPECT_EQ(more->shape.warps, one->shape.warps) << shape.k << "x" << shape.n;
    }
  }
}

TEST(Qpn8Schedule, TheMeasuredShapesRunTheKernelsThatWereMeasured) {
  const auto resident = [](std::int64_t k, std::int64_t n, std::int64_t groups, int rows) {
    const LinearShape shape = {.k = k, .n = n, .groups = groups};
    return runs_resident(shape, choose_schedule(shape, rows, kHopper)->shape, rows, kHopper);
  };
  for (const int rows : {1, 8}) {
    EXPECT_TRUE(resident(4096, 1536, 1, rows));
    EXPECT_TRUE(resident(1024, 8192, 1, rows));
    EXPECT_TRUE(resident(2048, 4096, 1, rows));
    EXPECT_TRUE(resident(4096, 1024, 2, rows));
    EXPECT_TRUE(resident(512, 4096, 1, rows));
    EXPECT_TRUE(resident(2560, 4096, 1, rows));
    EXPECT_TRUE(resident(1536, 2560, 1, rows));
    EXPECT_TRUE(resident(2560, 3584, 1, rows));
    EXPECT_TRUE(resident(320, 10240, 1, rows));
    EXPECT_TRUE(resident(10240, 384, 1, rows));
    for (const auto& [k, n] : {std::pair(4096, 24576), std::pair(12288, 4096), std::pair(5120, 8704)}) {
      const LinearShape shape = {.k = k, .n = n};
      EXPECT_TRUE(runs_streamed(shape, choose_schedule(shape, rows, kHopper)->shape, rows, kHopper)) << k << "x" << n;
    }
  }
}

TEST(Qpn8Schedule, AResidentKernelIsNeverChosenForMoreTilesThanItHasPlacesFor) {
  // 160 tiles for 132 clusters: some own two, which one slot and a unit of one tile cannot hold.
  const LinearShape shape = {.k = 4096, .n = 2560};
  ScheduleShape schedule = {.split = 1, .clusters = 132, .unit_tiles = 1, .chunk_steps = 16, .slots = 1};
  EXPECT_FALSE(is_resident(shape, schedule));
  EXPECT_FALSE(runs_resident(shape, schedule, 1, kHopper));
  schedule.clusters = 160;
  EXPECT_TRUE(runs_resident(shape, schedule, 1, kHopper));
  EXPECT_FALSE(runs_resident(shape, schedule, 1, kAmpere));
  schedule.slots = 0;
  EXPECT_FALSE(runs_resident(shape, schedule, 1, kHopper));
}

TEST(Qpn8Schedule, IllegalSchedulesAreRefusedWithTheReason) {
  const LinearShape shape = {.k = 4096, .n = 1536};
  const ScheduleShape legal = {.split = 2, .clusters = 66, .unit_tiles = 2, .chunk_steps = 8, .slots = 2};
  ASSERT_THAT(schedule_refusal(shape, legal, 8, kHopper), IsEmpty());
  const auto refusal = [&](auto change) {
    ScheduleShape schedule = legal;
    change(schedule);
    return schedule_refusal(shape, schedule, 8, kHopper);
  };
  EXPECT_THAT(refusal([](auto& s) { s.split = 3; }), HasSubstr("k split over 3 blocks"));
  EXPECT_THAT(refusal([](auto& s) { s.split = 16; }), HasSubstr("k split over 16 blocks"));
  EXPECT_THAT(refusal([](auto& s) { s.clusters = 0; }), HasSubstr("0 clusters"));
  EXPECT_THAT(refusal([](auto& s) { s.unit_tiles = 3; }), HasSubstr("units of 3 tiles"));
  EXPECT_THAT(refusal([](auto& s) { s.unit_tiles = 5; }), HasSubstr("units of 5 tiles"));
  EXPECT_THAT(refusal([](auto& s) { s.chunk_steps = 3; }), HasSubstr("copies of 3 steps"));
  EXPECT_THAT(refusal([](auto& s) { s.slots = 17; }), HasSubstr("17 slots"));
  EXPECT_THAT(refusal([](auto& s) { s.slots = 0; }), HasSubstr("0 slots"));
  EXPECT_THAT(refusal([](auto& s) { s.warps = 4; }), HasSubstr("4 warps"));
  EXPECT_THAT(refusal([](auto& s) { s.warps = 5; }), HasSubstr("5 warps"));
  EXPECT_THAT(refusal([](auto& s) {
                s.slots = 16;
                s.chunk_steps = 8;
              }),
              HasSubstr("bytes of shared memory"));
  EXPECT_THAT(schedule_refusal(shape, legal, 17, kHopper), HasSubstr("17 rows"));
  EXPECT_THAT(schedule_refusal(shape, legal, 0, kHopper), HasSubstr("0 rows"));
  EXPECT_THAT(schedule_refusal({.k = 40, .n = 64}, legal, 1, kHopper), HasSubstr("K=40 N=64"));
  EXPECT_THAT(schedule_refusal({.k = 4096, .n = 1024, .groups = 100}, legal, 1, kHopper), HasSubstr("100 groups"));
  EXPECT_THAT(schedule_refusal(shape, legal, 1, kAmpere), HasSubstr("k split over 2 blocks"));
}

TEST(Qpn8Schedule, SharedMemoryIsLaidOutWithoutOverlap) {
  for (const LinearShape& shape : shapes()) {
    for (const int rows : {1, 8, 16}) {
      const auto chosen = choose_schedule(shape, rows, kHopper);
      if (!chosen) continue;
      const ScheduleShape& schedule = chosen->shape;
      const SharedLayout layout = shared_layout(shape, schedule, rows);
      const int sums = layout.sums_stride * schedule.warps + layout.sums_parity;
      EXPECT_LE(layout.peer_barriers + 2 * kBarrierBytes, layout.x);
      EXPECT_LE(layout.x + schedule.warps * layout.x_bytes, layout.ring);
      EXPECT_TRUE(layout.sums == layout.ring || layout.sums >= layout.ring + schedule.warps * layout.ring_bytes);
      EXPECT_LE(layout.sums + sums, layout.sums == layout.ring ? layout.peers : layout.total);
      EXPECT_LE(layout.total, kHopper.block_shared_bytes);
    }
  }
}

}  // namespace
}  // namespace qpn8::cuda
