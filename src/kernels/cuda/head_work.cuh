#pragma once

#include "kernels/cuda/heads.hpp"
#include "kernels/cuda/launch.cuh"

// What is done to one head by one warp, between a projection and attention. The head lies in shared memory between the
// steps; the order of its sums depends on nothing but head_dim.

namespace qpn8::cuda {

/// The weights of a lane's numbers; they do not depend on earlier kernels.
class LaneNorm {
 public:
  __device__ LaneNorm(const float* norm, int head_dim, int lane) {
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const int i = lane + j * kWarpSize;
      weights_[j] = norm != nullptr && i < head_dim ? norm[i] : 0.0F;
    }
  }

  __device__ void apply(float* head, int head_dim, float eps, int lane) const {
    float squares = 0.0F;
    for (int i = lane; i < head_dim; i += kWarpSize) squares = fmaf(head[i], head[i], squares);
    const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(head_dim) + eps);
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const int i = lane + j * kWarpSize;
      if (i < head_dim) head[i] *= scale * weights_[j];
    }
    __syncwarp();
  }

 private:
  static constexpr int kPerLane = static_cast<int>(kMaxHeadDim) / kWarpSize;
  float weights_[kPerLane];
};

/// The angles of a lane's pairs for one row, asked for before they are needed.
class LaneAngles {
 public:
  __device__ LaneAngles(const Rotation& rotation, long row, int pairs, int lane)
      : interleaved_(rotation.interleaved), pairs_(pairs) {
    const float* angles = rotation.angles.data + row * rotation.angles.stride;
#pragma unroll
    for (int j = 0; j < kPairsPerLane; ++j) {
      const int i = lane + j * kWarpSize;
      const bool there = i < pairs;
      cosines_[j] = there ? angles[i] : 0.0F;
      sines_[j] = there ? angles[pairs + i] : 0.0F;
    }
  }

  __device__ void rotate(float* head, int lane) const {
#pragma unroll
    for (int j = 0; j < kPairsPerLane; ++j) {
      const int i = lane + j * kWarpSize;
      if (i >= pairs_) continue;
      const int low = interleaved_ ? 2 * i : i;
      const int high = interleaved_ ? low + 1 : i + pairs_;
      const float a = head[low];
      const float b = head[high];
      // Spelt out, so that every kernel that does this rounds alike.
      head[low] = fmaf(a, cosines_[j], -__fmul_rn(b, sines_[j]));
      head[high] = fmaf(b, cosines_[j], __fmul_rn(a, sines_[j]));
    }
    __syncwarp();
  }

 private:
  static constexpr int kPairsPerLane = static_cast<int>(kMaxHeadDim) / kWarpSize / 2;
  float cosines_[kPairsPerLane];
  float sines_[kPairsPerLane];
  bool interleaved_;
  int pairs_;
};

/// A head of `work` in FP32, normalised and rotated as the work says. After the wait for earlier kernels.
__device__ inline void load_head(const HeadWork& work, const Rotation& rotation, long row, long index,
                                 const LaneNorm& norm, int head_dim, int lane, float* head) {
  const __half* source = work.x.data + row * work.x.stride + index * head_dim;
  for (int i = lane; i < head_dim; i += kWarpSize) head[i] = __half2float(source[i]);
  const int pairs = work.rotated ? static_cast<int>(rotation.angles.cols / 2) : 0;
  const LaneAngles angles(rotation, row, pairs, lane);
  __syncwarp();
  if (work.norm != nullptr) norm.apply(head, head_dim, work.eps, lane);
  if (work.rotated) angles.rotate(head, lane);
}

/// Stores a head; FP16 rounds to nearest.
template <class T>
__device__ void store_head(T* to, const float* head, int head_dim, int lane) {
  for (int i = lane; i < head_dim; i += kWarpSize) store_float(to + i, head[i]);
}

/// Where the cache keeps `index`-th key head (or value head) of a sequence's position, in elements.
__device__ inline long kv_offset(const KvLayer& layer, long slot, long index, long position) {
  return ((slot * layer.kv_heads + index) * layer.capacity + position) * layer.head_dim;
}

}  // namespace qpn8::cuda
