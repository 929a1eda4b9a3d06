#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/packed_layout.hpp"
#include "kernels/cuda/qpn8_linear.hpp"

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

/// Adds the warps' sums and writes scale * sum + bias; `scales` and `bias` are those of the tile's first channel, or
/// null.
__device__ inline void write_tile(const TileSum& sum, long first_channel, int rows, float factor, const float* scales,
                                  const float* bias, const ProductOutput& y) {
  __shared__ float partial[kProductWarps][kFragmentChannels][kProductRows + 1];  // the odd width spreads the banks
  const int warp = threadIdx.x / kWarpSize;
  const int group = threadIdx.x % kWarpSize / 4;
  const int quad = threadIdx.x % 4;
  for (int i = 0; i < 4; ++i) partial[warp][group + i / 2 * 8][quad * 2 + i % 2] = sum.values[i];
  __syncthreads();
  const int channel = threadIdx.x % kFragmentChannels;
  const int row = threadIdx.x / kFragmentChannels;
  const long n = first_channel + channel;
  if (row >= rows || n >= y.n) return;
  float total = 0.0F;
  for (int w = 0; w < kProductWarps; ++w) total += partial[w][channel][row];
  total *= scales != nullptr ? factor * scales[channel] : factor;
  if (bias != nullptr) total += bias[channel];
  const long at = row * y.stride + n;
  if (y.dtype == DType::f32) {
    static_cast<float*>(y.data)[at] = total;
  } else {
    static_cast<__half*>(y.data)[at] = __float2half_rn(total);
  }
}

}  // namespace qpn8::cuda
