#pragma once

#include "kernels/cuda/product.cuh"

namespace qpn8::cuda {

// E4M3 bits in FP16 position read as value / 256; the missing 2^8 is multiplied into the sum with the scale.
inline constexpr float kDecodeFactor = 256.0F;

/// Two codes, the lower 16 bits of the argument, as two FP16 numbers over 256.
__device__ inline unsigned decode_pair(unsigned codes) {
  const unsigned spread = (codes & 0xffU) << 8 | (codes & 0xff00U) << 16;
  return (spread & 0x80008000U) | (spread & 0x7f007f00U) >> 1;
}

__device__ inline void add_step(TileSum& sum, const uint4& w, const uint4& v) {
  sum.multiply_accumulate(decode_pair(w.x), decode_pair(w.y), decode_pair(w.x >> 16), decode_pair(w.y >> 16), v.x, v.y);
  sum.multiply_accumulate(decode_pair(w.z), decode_pair(w.w), decode_pair(w.z >> 16), decode_pair(w.w >> 16), v.z, v.w);
}

/// Where the scales of a tile begin: one a channel, or one a block of k.
__device__ inline const float* scales_of_tile(const PackedLayout& weight, long tile) {
  if (weight.scale_kind == ScaleKind::channel) return weight.scales + tile * kFragmentChannels;
  const long blocks = (weight.k + weight.block_k - 1) / weight.block_k;
  return weight.scales + tile * kFragmentChannels / weight.block_n * blocks;
}

/// One warp's part of a tile, for rows of x from `x` on; without the channels' scales and kDecodeFactor. The warps take
/// the steps of k in turn, so that neighbouring loads run together.
__device__ inline TileSum packed_tile(const PackedLayout& weight, long tile, const __half* x, long x_stride, int rows) {
  const int warp = threadIdx.x / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const int steps = static_cast<int>(weight.steps());
  const uint4* codes = reinterpret_cast<const uint4*>(weight.codes) + tile * steps * kWarpSize + lane;
  const float* scales = scales_of_tile(weight, tile);
  const int group = lane / 4;
  TileSum sum;
  for (int step = warp; step < steps; step += kProductWarps) {
    const int k = static_cast<int>(step * kFragmentStep) + lane % 4 * 8;
    const uint4 w = codes[static_cast<long>(step) * kWarpSize];
    uint4 v = {};
    if (group < rows && k < weight.k) v = *reinterpret_cast<const uint4*>(x + group * x_stride + k);
    if (weight.scale_kind == ScaleKind::channel) {
      add_step(sum, w, v);
      continue;
    }
    TileSum part;
    add_step(part, w, v);
    const float scale = scales[step * kFragmentStep / weight.block_k];
    for (int i = 0; i < 4; ++i) sum.values[i] = fmaf(part.values[i], scale, sum.values[i]);
  }
  return sum;
}

/// The scales that write_tile multiplies by: block scales are in the sum already.
__device__ inline const float* channel_scales(const PackedLayout& weight, long tile) {
  return weight.scale_kind == ScaleKind::channel ? scales_of_tile(weight, tile) : nullptr;
}

}  // namespace qpn8::cuda
