#include "kernels/cuda/qpn8_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace qpn8::cuda {
namespace {

constexpr int kBulkCopyCapability = 90;
constexpr int kAlignment = 128;
constexpr int kFloatBytes = 4;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

int align_up(int bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::int64_t steps_of(const LinearShape& shape) { return divide_up(shape.k, kStepInputs); }

std::int64_t tiles_of(const LinearShape& shape) { return shape.n / kTileChannels; }

int warp_x_bytes(const LinearShape& shape, const ScheduleShape& schedule, int rows) {
  const int step_bytes = rows == 1 ? 4 * kLaneBytes : compiled_rows(rows) / 8 * kStepBytes;
  return static_cast<int>(warp_steps(shape, schedule)) * step_bytes;
}

bool is_power_of_two_up_to(int value, int limit) { return value >= 1 && value <= limit && (value & (value - 1)) == 0; }

}  // namespace

std::int64_t warp_steps(const LinearShape& shape, const ScheduleShape& schedule) {
  return divide_up(steps_of(shape), static_cast<std::int64_t>(schedule.split) * schedule.warps);
}

std::int64_t group_clusters(const LinearShape& shape, const ScheduleShape& schedule) {
  return schedule.clusters / shape.groups;
}

std::int64_t cluster_tiles(const LinearShape& shape, const ScheduleShape& schedule) {
  return divide_up(tiles_of(shape), std::max<std::int64_t>(1, group_clusters(shape, schedule)));
}

bool is_even(const LinearShape& shape, const ScheduleShape& schedule) {
  const std::int64_t parts = static_cast<std::int64_t>(schedule.split) * schedule.warps;
  return steps_of(shape) % (parts * schedule.chunk_steps) == 0;
}

bool is_resident(const LinearShape& shape, const ScheduleShape& schedule) {
  const std::int64_t tiles = cluster_tiles(shape, schedule);
  return shape.k % kStepInputs == 0 && is_even(shape, schedule) &&
         warp_steps(shape, schedule) == schedule.chunk_steps && tiles <= schedule.unit_tiles && tiles <= schedule.slots;
}

SharedLayout shared_layout(const LinearShape& shape, const ScheduleShape& schedule, int rows) {
  SharedLayout layout;
  layout.peer_barriers = kLinearWarps * kMaxSlots * kBarrierBytes;
  layout.squares = layout.peer_barriers + 2 * kBarrierBytes;
  layout.x = align_up(layout.squares + schedule.warps * std::min(compiled_rows(rows), 8) * kFloatBytes);
  layout.x_bytes = warp_x_bytes(shape, schedule, rows);
  layout.ring = align_up(layout.x + schedule.warps * layout.x_bytes);
  layout.ring_bytes = schedule.slots * schedule.chunk_steps * kStepBytes;
  const int rings_end = layout.ring + schedule.warps * layout.ring_bytes;
  const int unit_channels = schedule.unit_tiles * kTileChannels;
  const int sums_bytes = compiled_rows(rows) * (unit_channels + 4) * kFloatBytes;
  const bool one_unit = cluster_tiles(shape, schedule) <= schedule.unit_tiles;
  const int buffers = one_unit ? 1 : 2;
  if (one_unit && sums_bytes <= layout.ring_bytes) {
    // A warp that has read its last code needs its ring no more.
    layout.sums = layout.ring;
    layout.sums_stride = layout.ring_bytes;
    layout.peers = rings_end;
  } else {
    layout.sums = rings_end;
    layout.sums_stride = sums_bytes;
    layout.sums_parity = one_unit ? 0 : schedule.warps * sums_bytes;
    layout.peers = rings_end + buffers * schedule.warps * sums_bytes;
  }
  const int peer_bytes = compiled_rows(rows) * unit_channels * kFloatBytes;
  layout.total = align_up(layout.peers + (schedule.split > 1 ? buffers * peer_bytes : 0));
  return layout;
}

namespace {

bool is_compiled(std::span<const FixedForm> forms, const ScheduleShape& schedule) {
  const FixedForm form = {schedule.unit_tiles, schedule.chunk_steps, schedule.warps};
  return std::find(forms.begin(), forms.end(), form) != forms.end();
}

}  // namespace

bool runs_resident(const LinearShape& shape, const ScheduleShape& schedule, int rows, const DeviceLimits& device) {
  return device.compute_capability >= kBulkCopyCapability && rows <= 8 && is_resident(shape, schedule) &&
         is_compiled(kResidentForms, schedule);
}

bool runs_streamed(const LinearShape& shape, const ScheduleShape& schedule, int rows, const DeviceLimits& device) {
  return device.compute_capability >= kBulkCopyCapability && rows <= 8 && is_even(shape, schedule) &&
         is_compiled(kStreamedForms, schedule);
}

std::string schedule_refusal(const LinearShape& shape, const ScheduleShape& schedule, int rows,
                             const DeviceLimits& device) {
  const auto refuse = [&](const std::string& why) { return fmt::format("K={} N={}: {}", shape.k, shape.n, why); };
  if (shape.k <= 0 || shape.n <= 0 || shape.k % 16 != 0 || shape.n % kTileChannels != 0 || shape.groups < 1) {
    return refuse("K must be a multiple of 16 and N of 16");
  }
  if (rows < 1 || rows > kMaxLinearRows)
    return refuse(fmt::format("{} rows; 1 to {} are served", rows, kMaxLinearRows));
  const bool bulk_copies = device.compute_capability >= kBulkCopyCapability;
  if (!is_power_of_two_up_to(schedule.split, bulk_copies ? kMaxCluster : 1)) {
    return refuse(fmt::format("k split over {} blocks; 1, 2, 4 or 8 from sm_90 on, 1 before it", schedule.split));
  }
  if (schedule.warps != kLinearWarps &&
      !(schedule.warps == kFewLinearWarps && runs_resident(shape, schedule, rows, device))) {
    return refuse(fmt::format("{} warps a block; 8, or 5 where a resident unit is 5 tiles of 2 steps", schedule.warps));
  }
  if (group_clusters(shape, schedule) < 1) {
    return refuse(fmt::format("{} clusters for {} groups, which share none", schedule.clusters, shape.groups));
  }
  if (!is_power_of_two_up_to(schedule.unit_tiles, 4) &&
      !(schedule.unit_tiles == 5 && schedule.split == 1 && runs_resident(shape, schedule, rows, device))) {
    return refuse(fmt::format("units of {} tiles; 1, 2 or 4, or 5 where a resident kernel is", schedule.unit_tiles));
  }
  if (schedule.slots < 1 || schedule.slots > kMaxSlots || (!bulk_copies && schedule.slots != kLaneCopySlots)) {
    return refuse(
        fmt::format("{} slots; 1 to {} from sm_90 on, {} before it", schedule.slots, kMaxSlots, kLaneCopySlots));
  }
  const bool whole = schedule.chunk_steps >= warp_steps(shape, schedule);
  if (schedule.chunk_steps < 1 || (schedule.chunk_steps % 2 != 0 && !whole)) {
    return refuse(fmt::format("copies of {} steps; an even number, or all of a warp's", schedule.chunk_steps));
  }
  const int bytes = shared_layout(shape, schedule, rows).total;
  if (bytes > device.block_shared_bytes) {
    return refuse(fmt::format("{} bytes of shared memory a block; there are {}", bytes, device.block_shared_bytes));
  }
  return {};
}

}  // namespace qpn8::cuda