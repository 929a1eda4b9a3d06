#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

// How the packed product of sm_80 and later walks a weight. Pure functions of shape and device, apart from the kernel
// that obeys them: a test can ask for any shape on any machine.

namespace qpn8::cuda {

inline constexpr int kTileChannels = 16;  ///< output channels a tile: the rows of one tensor-core operand
inline constexpr int kStepInputs = 32;    ///< k a step: 512 bytes of a tile's codes
inline constexpr int kStepBytes = kTileChannels * kStepInputs;
inline constexpr int kWarpLanes = 32;
inline constexpr int kLaneBytes = kStepBytes / kWarpLanes;
inline constexpr int kLinearWarps = 8;     ///< warps a block, which share k
inline constexpr int kFewLinearWarps = 5;  ///< for a k of few steps that 5 divides better
inline constexpr int kMaxSlots = 16;       ///< copies in flight a warp
inline constexpr int kLaneCopySlots = 4;   ///< the same before sm_90, where the count must be a constant
inline constexpr int kBarrierBytes = 8;    ///< of an mbarrier
inline constexpr int kMaxCluster = 8;      ///< blocks a cluster
inline constexpr int kMaxLinearRows = 16;

/// What the schedule may depend on: `groups` independent products of n channels and k inputs each.
struct LinearShape {
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t groups = 1;
};

/// The part of a GPU that matters here.
struct DeviceLimits {
  int compute_capability = 90;
  int multiprocessors = 132;
  int block_shared_bytes = 227 * 1024;           ///< most a block can ask for
  int multiprocessor_shared_bytes = 228 * 1024;  ///< shared by the blocks of a multiprocessor; each also takes 1 KiB
};

/// What the kernel is told. `split` and `warps` alone decide the order of a sum, and they never depend on the rows.
struct ScheduleShape {
  int split = 1;             ///< blocks of a cluster: they share k and meet in distributed shared memory; 1, 2, 4 or 8
  int clusters = 1;          ///< launched; each owns a contiguous range of one group's tiles, or nothing
  int warps = kLinearWarps;  ///< a block: 8; or 5 for a resident schedule of units of 5 tiles and 2 steps
  int unit_tiles = 1;        ///< tiles between two sums over warps: 1, 2 or 4, or 5 where k is not split
  int chunk_steps = 2;       ///< steps a copy; even, or no less than a warp's steps
  int slots = 1;             ///< copies in flight a warp

  friend bool operator==(const ScheduleShape&, const ScheduleShape&) = default;
};

struct LinearSchedule {
  ScheduleShape shape;
  std::string reason;  ///< why this one, in words
};

/// Bytes from the start of a block's dynamic shared memory, which the barriers of the rings begin.
struct SharedLayout {
  int peer_barriers = 0;  ///< two
  int squares = 0;        ///< of x, a float a warp and row
  int x = 0;              ///< x, a part of k a warp
  int x_bytes = 0;        ///< one warp's
  int ring = 0;           ///< a ring a warp
  int ring_bytes = 0;     ///< one warp's
  int sums = 0;           ///< partial sums of the warps
  int sums_stride = 0;    ///< from warp to warp
  int sums_parity = 0;    ///< from the buffer of even units to that of odd ones
  int peers = 0;          ///< partial sums of the cluster's blocks, for the outputs that the block finishes
  int total = 0;
};

/// Rows that a kernel is compiled for: 1, 8 or 16. The rest is masked.
constexpr int compiled_rows(int rows) { return rows == 1 ? 1 : rows <= 8 ? 8 : 16; }

/// Steps of the longest warp.
std::int64_t warp_steps(const LinearShape& shape, const ScheduleShape& schedule);

/// Clusters that each group has; what is left over idles.
std::int64_t group_clusters(const LinearShape& shape, const ScheduleShape& schedule);

/// Tiles of the longest cluster.
std::int64_t cluster_tiles(const LinearShape& shape, const ScheduleShape& schedule);

/// Whether every chunk of every warp has chunk_steps steps.
bool is_even(const LinearShape& shape, const ScheduleShape& schedule);

/// Whether every code has a place of its own in shared memory and a tile is one copy a warp: see KernelForm.
bool is_resident(const LinearShape& shape, const ScheduleShape& schedule);

SharedLayout shared_layout(const LinearShape& shape, const ScheduleShape& schedule, int rows);

/// A kernel compiled for chunks of a fixed number of steps, from sm_90 on, for 1 and 8 rows.
struct FixedForm {
  int unit_tiles = 1;
  int chunk_steps = 2;
  int warps = kLinearWarps;

  friend bool operator==(const FixedForm&, const FixedForm&) = default;
};

/// Straight-line kernels for schedules that are is_resident: what a small matrix of a decode step needs.
inline constexpr std::array kResidentForms = {
    FixedForm{1, 4},  FixedForm{1, 5},  FixedForm{1, 6}, FixedForm{1, 8},
    FixedForm{1, 10}, FixedForm{1, 16}, FixedForm{2, 2}, FixedForm{2, 4},
    FixedForm{2, 5},  FixedForm{2, 6},  FixedForm{2, 8}, FixedForm{2, 10},
    FixedForm{4, 2},  FixedForm{4, 4},  FixedForm{4, 5}, FixedForm{5, 2, kFewLinearWarps}};

/// Kernels for schedules that are is_even: what a large matrix needs.
inline constexpr std::array kStreamedForms = {FixedForm{2, 6},  FixedForm{4, 6},  FixedForm{2, 8},  FixedForm{4, 8},
                                              FixedForm{2, 10}, FixedForm{4, 10}, FixedForm{2, 12}, FixedForm{4, 12},
                                              FixedForm{2, 16}, FixedForm{4, 16}};

/// Whether a kernel of that form exists and serves the schedule.
bool runs_resident(const LinearShape& shape, const ScheduleShape& schedule, int rows, const DeviceLimits& device);
bool runs_streamed(const LinearShape& shape, const ScheduleShape& schedule, int rows, const DeviceLimits& device);

/// The schedule for one shape and number of rows, legal in the sense of schedule_refusal. `split` and `warps` depend on
/// shape and device alone. None if not even one row of x fits: see rows_that_fit.
std::optional<LinearSchedule> choose_schedule(const LinearShape& shape, int rows, const DeviceLimits& device);

/// Most rows (16, 8 or 1) that a schedule serves at once; 0 if there is none.
int rows_that_fit(const LinearShape& shape, const DeviceLimits& device);

/// Why the kernel cannot run like this, or an empty string. Nothing else keeps a schedule from giving wrong results.
std::string schedule_refusal(const LinearShape& shape, const ScheduleShape& schedule, int rows,
                             const DeviceLimits& device);

}  // namespace qpn8::cuda
