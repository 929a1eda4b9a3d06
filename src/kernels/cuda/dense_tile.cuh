#pragma once

#include "kernels/cuda/dense_linear.hpp"
#include "kernels/cuda/product.cuh"

namespace qpn8::cuda {

inline constexpr int kDenseStep = 32;   // k that one 16-byte load a lane covers
inline constexpr int kDenseUnroll = 4;  // steps whose loads are in flight together

/// Eight FP16 numbers of a row of `size`, from k on; zeros beyond its end.
template <bool kEights>
__device__ uint4 load_eight(const __half* row, int k, int size) {
  if constexpr (kEights) {
    return k < size ? *reinterpret_cast<const uint4*>(row + k) : uint4{};
  } else {
    unsigned words[4] = {};
    for (int i = 0; i < 8 && k + i < size; ++i) words[i / 2] |= __half_as_ushort(row[k + i]) << i % 2 * 16;
    return {words[0], words[1], words[2], words[3]};
  }
}

/// The two channels of a tile that a lane has weights of.
struct TileChannels {
  long low;
  long high;

  /// Of the tile of 16 channels from `first` on, or of 8 from there and 8 that lie `apart` further.
  __device__ TileChannels(long first, long apart) : low(first + threadIdx.x % kWarpSize / 4), high(low + apart) {}
};

/// The weights of a lane for a few steps.
template <bool kEights>
struct DenseSteps {
  uint4 low[kDenseUnroll];
  uint4 high[kDenseUnroll];

  __device__ DenseSteps(const DenseWeight& weight, const TileChannels& channels, int first_k) {
    const int k = static_cast<int>(weight.k);
    for (int i = 0; i < kDenseUnroll; ++i) {
      const int at = first_k + i * kDenseStep;
      low[i] = load_eight<kEights>(weight.data + channels.low * weight.k, at, channels.low < weight.n ? k : 0);
      high[i] = load_eight<kEights>(weight.data + channels.high * weight.k, at, channels.high < weight.n ? k : 0);
    }
  }
};

/// Rows of x as they lie in memory.
struct PlainRows {
  const __half* data;
  long stride;
  int rows;

  /// After the wait for earlier kernels.
  __device__ PlainRows get() const { return *this; }
};

/// One warp's part of 16 channels. Asks for the first weights before it waits for the kernels before; x.get() is what
/// the rows are multiplied as, asked for after that.
template <bool kEights, class Rows>
__device__ TileSum dense_tile(const DenseWeight& weight, const TileChannels& channels, const Rows& x) {
  constexpr int kStride = kProductWarps * kDenseUnroll * kDenseStep;
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int group = lane / 4;
  const int size = group < x.rows ? static_cast<int>(weight.k) : 0;
  int k = warp * kDenseUnroll * kDenseStep + lane % 4 * 8;
  allow_next_kernel();
  DenseSteps<kEights> now(weight, channels, k);
  wait_for_earlier_kernels();
  const PlainRows from = x.get();
  TileSum sum;
  for (int done = warp * kDenseUnroll * kDenseStep; done < weight.k; done += kStride, k += kStride) {
    const DenseSteps<kEights> next(weight, channels, k + kStride);
    for (int i = 0; i < kDenseUnroll; ++i) {
      const uint4 a = now.low[i];
      const uint4 b = now.high[i];
      const uint4 v = load_eight<kEights>(from.data + group * from.stride, k + i * kDenseStep, size);
      sum.multiply_accumulate(a.x, b.x, a.y, b.y, v.x, v.y);
      sum.multiply_accumulate(a.z, b.z, a.w, b.w, v.z, v.w);
    }
    now = next;
  }
  return sum;
}

}  // namespace qpn8::cuda
