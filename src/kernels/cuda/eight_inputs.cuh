#pragma once

#include <cuda_fp16.h>

// Rows of a product's x that are normalised where they are read.

namespace qpn8::cuda {

/// sum + the squares of eight halves, one after the other.
__device__ inline float add_squares(const uint4& eight, float sum) {
  const auto* pairs = reinterpret_cast<const __half2*>(&eight);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 two = __half22float2(pairs[i]);
    sum = fmaf(two.x, two.x, sum);
    sum = fmaf(two.y, two.y, sum);
  }
  return sum;
}

/// The weights of a norm for eight inputs.
class NormWeights {
 public:
  NormWeights() = default;
  __device__ explicit NormWeights(const float* weights)
      : low_(__ldg(reinterpret_cast<const float4*>(weights))),
        high_(__ldg(reinterpret_cast<const float4*>(weights) + 1)) {}

  /// Eight halves, each times scale, then times its weight, rounded.
  __device__ uint4 scaled(const uint4& eight, float scale) const {
    const auto* pairs = reinterpret_cast<const __half2*>(&eight);
    const float by[] = {low_.x, low_.y, low_.z, low_.w, high_.x, high_.y, high_.z, high_.w};
    uint4 result;
    auto* out = reinterpret_cast<__half2*>(&result);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = __half22float2(pairs[i]);
      out[i] = __floats2half2_rn(two.x * scale * by[2 * i], two.y * scale * by[2 * i + 1]);
    }
    return result;
  }

 private:
  float4 low_;
  float4 high_;
};

/// Brings 32 weights of a norm to the L2, from which the weights of the layers between have driven them.
__device__ inline void prefetch_norm(const float* line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }
inline constexpr int kPrefetchedFloats = 32;

}  // namespace qpn8::cuda
