#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/cuda/qpn8_schedule.hpp"

// What was measured on an H200 (docs/performance-cuda.md) as rules: how k is split, then the first form that fits.

namespace qpn8::cuda {
namespace {

constexpr int kBulkCopyCapability = 90;
constexpr int kReservedBytes = 1024;  // of shared memory, which the driver takes a block

// Beyond this k a block's x of 8 rows leaves too little shared memory for codes.
constexpr std::int64_t kMostInputsABlock = 8192;

// A block whose codes do not all fit shares its multiprocessor with no second one of its kind, or the blocks of a
// kernel that starts while others end would pile up on the first multiprocessors that are free: a decode step takes 12
// % longer then. It leaves room for a block of attention, so that codes are loaded while that runs.
constexpr int kStreamedBytes = 190 * 1024;

std::int64_t tiles_of(const LinearShape& shape) { return shape.n / kTileChannels; }

bool has_bulk_copies(const DeviceLimits& device) { return device.compute_capability >= kBulkCopyCapability; }

/// Where measurements overrule the rules below.
struct Measured {
  std::int64_t k;
  std::int64_t n;
  std::int64_t groups;
  int split;
  int clusters;
};

constexpr std::array kMeasured = {
    // 8 rows: 3.2 us instead of 3.9, because a block reads half of x; 1 row: 2.5 instead of 2.2.
    Measured{4096, 1536, 1, 2, 66},
    // 544 tiles: the last round is as long with 128 blocks as with 132, and the others are shorter.
    Measured{5120, 8704, 1, 1, 128},
};

/// The least split that gives seven tenths of the multiprocessors work and leaves room for codes beside x.
int choose_split(const LinearShape& shape, const DeviceLimits& device) {
  if (!has_bulk_copies(device)) return 1;
  int split = 1;
  while (split < kMaxCluster && (tiles_of(shape) * shape.groups * split * 10 < device.multiprocessors * 7 ||
                                 shape.k > kMostInputsABlock * split)) {
    split *= 2;
  }
  return split;
}

/// What decides the order of a sum, and how many clusters there are: the same for any number of rows.
ScheduleShape choose_base(const LinearShape& shape, const DeviceLimits& device) {
  ScheduleShape base;
  base.split = choose_split(shape, device);
  base.clusters = device.multiprocessors / base.split;
  for (const Measured& measured : kMeasured) {
    const bool same = shape.k == measured.k && shape.n == measured.n && shape.groups == measured.groups;
    if (!same || !has_bulk_copies(device) || measured.split * measured.clusters > device.multiprocessors) continue;
    base.split = measured.split;
    base.clusters = measured.clusters;
  }
  base.clusters = std::max(static_cast<int>(shape.groups), base.clusters);
  return base;
}

/// Shared memory of a block such that `blocks` of them share a multiprocessor.
int share_of(const DeviceLimits& device, int blocks) {
  return std::min(device.block_shared_bytes, device.multiprocessor_shared_bytes / blocks - kReservedBytes);
}

/// `schedule` with as many slots as fit `bytes`, and as are of use; no slots if not even one fits.
ScheduleShape with_slots(const LinearShape& shape, ScheduleShape schedule, int rows, int bytes) {
  const std::int64_t chunks =
      (warp_steps(shape, schedule) + schedule.chunk_steps - 1) / schedule.chunk_steps * cluster_tiles(shape, schedule);
  schedule.slots = static_cast<int>(std::clamp<std::int64_t>(chunks, 1, kMaxSlots));
  while (schedule.slots > 0 && shared_layout(shape, schedule, rows).total > bytes) --schedule.slots;
  return schedule;
}

std::optional<ScheduleShape> resident(const LinearShape& shape, const ScheduleShape& base, int rows,
                                      const DeviceLimits& device) {
  for (const FixedForm& form : kResidentForms) {
    if (form.warps != base.warps) continue;
    ScheduleShape schedule = base;
    schedule.unit_tiles = form.unit_tiles;
    schedule.chunk_steps = form.chunk_steps;
    for (const int blocks : {2, 1}) {
      schedule = with_slots(shape, schedule, rows, share_of(device, blocks));
      if (runs_resident(shape, schedule, rows, device) && schedule_refusal(shape, schedule, rows, device).empty()) {
        return schedule;
      }
    }
  }
  return {};
}

/// Fewer warps where a resident kernel for them serves the most rows that resident kernels do, and so all.
int choose_warps(const LinearShape& shape, ScheduleShape base, const DeviceLimits& device) {
  constexpr int kMostResidentRows = 8;
  base.warps = kFewLinearWarps;
  return resident(shape, base, kMostResidentRows, device) ? kFewLinearWarps : kLinearWarps;
}

std::optional<ScheduleShape> streamed(const LinearShape& shape, const ScheduleShape& base, int rows,
                                      const DeviceLimits& device) {
  constexpr std::array kChunks = {16, 12, 10, 8, 6};
  constexpr int kFewestSlots = 2;
  ScheduleShape schedule = base;
  schedule.unit_tiles = rows == 1 ? 4 : 2;
  for (const int bytes : {std::min(kStreamedBytes, device.block_shared_bytes), device.block_shared_bytes}) {
    for (const int chunk : kChunks) {
      schedule.chunk_steps = chunk;
      schedule = with_slots(shape, schedule, rows, bytes);
      if (schedule.slots >= kFewestSlots && runs_streamed(shape, schedule, rows, device)) return schedule;
    }
  }
  return {};
}

std::optional<ScheduleShape> general(const LinearShape& shape, const ScheduleShape& base, int rows,
                                     const DeviceLimits& device) {
  for (const int chunk : {8, 4, 2}) {
    for (const int unit_tiles : {2, 1}) {
      ScheduleShape schedule = base;
      schedule.chunk_steps = chunk;
      schedule.unit_tiles = unit_tiles;
      if (has_bulk_copies(device)) {
        schedule = with_slots(shape, schedule, rows, device.block_shared_bytes);
      } else {
        schedule.slots = kLaneCopySlots;
      }
      if (schedule_refusal(shape, schedule, rows, device).empty()) return schedule;
    }
  }
  return {};
}

}  // namespace

std::optional<LinearSchedule> choose_schedule(const LinearShape& shape, int rows, const DeviceLimits& device) {
  ScheduleShape base = choose_base(shape, device);
  base.warps = choose_warps(shape, base, device);
  const std::string parts = base.split == 1 ? "k in one block" : fmt::format("k over {} blocks", base.split);
  if (const auto schedule = resident(shape, base, rows, device)) {
    return LinearSchedule{*schedule, parts + ", every code in shared memory before x is known"};
  }
  if (const auto schedule = streamed(shape, base, rows, device)) {
    return LinearSchedule{*schedule, parts + fmt::format(", {} copies of {} steps in flight a warp", schedule->slots,
                                                         schedule->chunk_steps)};
  }
  if (const auto schedule = general(shape, base, rows, device)) {
    return LinearSchedule{*schedule, parts + ", steps counted at run time: no compiled form fits"};
  }
  return {};
}

int rows_that_fit(const LinearShape& shape, const DeviceLimits& device) {
  for (const int rows : {kMaxLinearRows, 8, 1}) {
    if (choose_schedule(shape, rows, device)) return rows;
  }
  return 0;
}

}  // namespace qpn8::cuda
