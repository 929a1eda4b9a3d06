#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/packed_layout.hpp"
#include "kernels/cuda/qpn8_linear.hpp"
#include "kernels/cuda/silu.cuh"

// Parts of the products of few rows: a block computes one tile of 16 channels for up to 8 rows of x, its warps split k,
// and their sums meet in shared memory in the order of the warps.

namespace qpn8::cuda {

inline constexpr int kProductWarps = 8;
inline constexpr int kProductThreads = kProductWarps * kWarpSize;
inline constexpr int kProductRows = 8;  // columns of the B operand of m16n8k16

/// The sums of one warp: channels group and group + 8, rows 2 quad and 2 quad + 1, for lane 4 group + quad.
struct TileSum {
  float values[4] = {};

  /// values += A B for 16 channels, 16 k and 8 rows: a the weights of channel group (k of the lane, then 8 further) and
  /// of group + 8 between them, b the same k of row `group` of x.
  __device__ void multiply_accumulate(unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(values[0]), "+f"(values[1]), "+f"(values[2]), "+f"(values[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
};

/// The output of a tile that a thread finishes: channel of the tile and row.
__device__ inline int channel_of_thread() { return threadIdx.x % kFragmentChannels; }
__device__ inline int row_of_thread() { return threadIdx.x / kFragmentChannels; }

/// What a thread's output is added to, read early: y at column `column`, or zero where there is none.
__device__ inline __half added_to(const ProductOutput& y, long column, int rows) {
  const bool there = y.end == ProductEnd::add && row_of_thread() < rows && column < y.n;
  return there ? static_cast<const __half*>(y.data)[row_of_thread() * y.stride + column] : __half();
}

/// A product as FP16, ended as y says. Called by all lanes of a warp; `up` is eight lanes on where channels are gated.
__device__ inline __half ended(const ProductOutput& y, float value, __half added) {
  const __half half = __float2half_rn(value);
  if (y.end == ProductEnd::add) return __float2half_rn(__half2float(added) + __half2float(half));
  if (y.end != ProductEnd::gate) return half;
  const float up = __shfl_xor_sync(kAllLanes, __half2float(half), kPairChannels);
  return __float2half_rn(silu(__half2float(half)) * up);
}

/// Adds the warps' sums and writes scale * sum + bias from column `first_column` of y on; `scales` and `bias` are those
/// of the tile's first channel, or null. `added` is that of added_to(). A gated tile has eight columns.
__device__ inline void write_tile(const TileSum& sum, long first_column, int rows, float factor, const float* scales,
                                  const float* bias, const ProductOutput& y, __half added = {}) {
  __shared__ float partial[kProductWarps][kFragmentChannels][kProductRows + 1];  // the odd width spreads the banks
  const int warp = threadIdx.x / kWarpSize;
  const int group = threadIdx.x % kWarpSize / 4;
  const int quad = threadIdx.x % 4;
  for (int i = 0; i < 4; ++i) partial[warp][group + i / 2 * 8][quad * 2 + i % 2] = sum.values[i];
  __syncthreads();
  const int channel = channel_of_thread();
  const int row = row_of_thread();
  if (row >= (rows + 1) / 2 * 2) return;  // a warp has two rows and goes on or leaves as one
  const long n = first_column + channel;
  const bool gated = y.end == ProductEnd::gate;
  const bool there = row < rows && n < y.n + (gated ? kPairChannels : 0);
  float total = 0.0F;
  for (int w = 0; w < kProductWarps; ++w) total += partial[w][channel][row];
  if (there) total *= scales != nullptr ? factor * scales[channel] : factor;
  if (there && bias != nullptr) total += bias[channel];
  const __half half = ended(y, total, added);
  if (!there || (gated && channel >= kPairChannels)) return;
  const long at = row * y.stride + n;
  if (y.dtype == DType::f32) {
    static_cast<float*>(y.data)[at] = total;
  } else {
    static_cast<__half*>(y.data)[at] = half;
  }
}

}  // namespace qpn8::cuda
