#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/qpn8_linear.hpp"
#include "kernels/cuda/qpn8_schedule.hpp"

namespace qpn8::cuda {

/// `count` things dealt to `parts` in order: the first `rest` parts get one more than `each`.
struct Deal {
  int each = 0;
  int rest = 0;
};

constexpr Deal deal(int count, int parts) { return {count / parts, count % parts}; }

/// One product, as the kernel sees it. Offsets into shared memory are in bytes.
struct LinearArgs {
  const unsigned char* codes;
  const float* scales;
  const float* bias;  ///< null: none
  const __half* x;
  void* y;
  ScheduleShape schedule;
  SharedLayout shared;
  Deal part_steps;  ///< steps of k, dealt to the warps of `split` blocks
  int group_clusters;
  int rows;
  int k;
  int steps;  ///< of k
  int tiles;  ///< of a group
  int groups;
  int columns;    ///< of y, over all groups; channels beyond it are padding
  long x_stride;  ///< elements from row to row
  long group_x;   ///< elements from group to group
  long y_stride;
  bool y_is_float;
  ProductEnd end;
  int paired_half;    ///< channels of gate where they are paired with those of up, else 0: see PackedLayout
  const float* norm;  ///< null: x is multiplied as it is
  float eps;
  int block_shift;       ///< block scales: log2 of the steps of a block
  int block_tile_shift;  ///< block scales: log2 of the tiles of a block
};

/// What the kernel may assume of the scales.
enum class ScaleMode : unsigned char {
  channel,        ///< one a channel
  block,          ///< one a block of any size
  aligned_block,  ///< blocks of 128 k, of which every chunk holds whole ones, or a part of one that is all of a warp's
                  ///< k
};

/// What is known when a kernel is compiled. Everything else it reads from its arguments.
struct KernelForm {
  int rows = 1;        ///< 1, 8 or 16
  int unit_tiles = 1;  ///< as in ScheduleShape
  ScaleMode scales = ScaleMode::channel;
  int warps = kLinearWarps;
  int chunk = 0;  ///< steps of every chunk of every warp, or 0 if it differs
  /// A tile is one chunk a warp, a cluster has one unit at most, and every chunk has a slot: nothing is copied twice to
  /// the same place, so that the whole product is straight-line code. k is a multiple of 32. It neither normalises x
  /// nor ends in another way than ProductEnd::store: the code for that costs products of 2 us a tenth of their time.
  bool resident = false;
};

using LinearKernel = void (*)(LinearArgs);

/// The kernel of a form that was compiled, or null. A file each, so that they compile side by side.
LinearKernel find_resident_kernel(const KernelForm& form);
LinearKernel find_streamed_kernel(const KernelForm& form);

/// Of any form with chunk 0 that is not resident.
LinearKernel find_general_kernel(const KernelForm& form);

}  // namespace qpn8::cuda
