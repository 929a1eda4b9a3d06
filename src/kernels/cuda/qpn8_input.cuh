#pragma once

#include "kernels/cuda/eight_inputs.cuh"
#include "kernels/cuda/qpn8_copy.cuh"
#include "kernels/cuda/qpn8_part.cuh"

namespace qpn8::cuda {

/// What normalised rows are multiplied by: their warps' squares meet in shared memory and are added warp after warp.
/// All threads of the block call it. `squares` are those of row `row` in the warp's part of k, the same in all lanes of
/// the row; kRows is 1 or 8.
template <int kRows>
__device__ float scale_of_row(unsigned char* shared, const LinearArgs& p, const WarpPart& part, int row, bool writes,
                              float squares) {
  auto* sums = reinterpret_cast<float*>(shared + p.shared.squares);
  if (writes) sums[part.warp * kRows + row] = squares;
  __syncthreads();
  float total = 0.0F;
  for (int warp = 0; warp < p.schedule.warps; ++warp) total += sums[warp * kRows + row];
  return rsqrtf(total / static_cast<float>(p.k) + p.eps);
}

/// The sum over the four lanes of a row.
__device__ inline float sum_of_quarters(float sum) {
  sum += __shfl_xor_sync(0xffffffffU, sum, 1);
  return sum + __shfl_xor_sync(0xffffffffU, sum, 2);
}

/// The same of eight sums a lane, in the order in which eight lanes would add them up.
__device__ inline float sum_of_eighths(const float (&sums)[8]) {
  return sum_of_quarters(((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])));
}

/// The squares of a row in a warp's part of k, for lanes of which each has all steps of a quarter of it, kWarpLanes
/// eights apart: as if eight lanes had taken every eighth step each, which is how a single row is added up.
__device__ inline float squares_of_quarter(const uint4* eights, int steps) {
  float sums[8] = {};
#pragma unroll 1
  for (int first = 0; first < steps; first += 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (first + i < steps) sums[i] = add_squares(eights[(first + i) * kWarpLanes], sums[i]);
    }
  }
  return sum_of_eighths(sums);
}

/// x of one warp's part of k in shared memory. Each warp copies its own, so that nobody waits for anybody: bulk copies
/// and a barrier of the block, also when clusters shared them, measured 0.7 us slower.
///
/// kRows == 1: [steps][4 lanes][16 bytes], the same for every channel. Else [row groups of 8][steps][32 lanes][16
/// bytes]: a lane copies what it reads itself. Rows that are not there and k beyond the last are zeros.
template <int kRows>
class WarpInput {
  static constexpr int kLanes = kRows == 1 ? 4 : kWarpLanes;
  static constexpr int kRowGroups = kRows == 16 ? 2 : 1;
  static constexpr int kLaneInputs = kLaneBytes / static_cast<int>(sizeof(__half));
  static constexpr int kHeldEights = kRows == 1 ? 2 : 0;  // of a lane: all where k is 4,096 and the warps are 8

 public:
  __device__ WarpInput(unsigned char* shared, const LinearArgs& p, const WarpPart& part)
      : memory_(reinterpret_cast<uint4*>(shared + p.shared.x + part.warp * p.shared.x_bytes)),
        read_(memory_ + (kRows == 1 ? part.lane % 4 : part.lane)),
        steps_(part.steps) {}

  /// Starts to copy.
  __device__ void start(const LinearArgs& p, const WarpPart& part) const {
    const __half* x = p.x + part.group * p.group_x + static_cast<long>(part.first_step) * kStepInputs;
    const int left = p.k - part.first_step * kStepInputs;
    if constexpr (kRows == 1) {
      for (int at = part.lane; at < steps_ * kLanes; at += kWarpLanes) {
        const bool there = at * kLaneInputs < left;
        copy_lane_or_zero(shared_address(memory_ + at), x + (there ? at * kLaneInputs : 0), there);
      }
    } else {
#pragma unroll
      for (int group = 0; group < kRowGroups; ++group) {
        const int row = group * 8 + part.lane / 4;
        const bool has_row = row < p.rows;
        const __half* from = x + (has_row ? row * p.x_stride : 0) + part.lane % 4 * kLaneInputs;
        unsigned to = shared_address(memory_ + group * steps_ * kWarpLanes + part.lane);
        const int mine = left - part.lane % 4 * kLaneInputs;
        for (int at = 0; at < steps_ * kStepInputs; at += kStepInputs, to += kStepBytes) {
          const bool there = has_row && at < mine;
          copy_lane_or_zero(to, from + (there ? at : 0), there);
        }
      }
    }
    commit_lane_copies();
  }

  __device__ void wait() const {
    wait_lane_copies<0>();
    __syncwarp();
  }

  /// Asks for the weights of the norm, which depend on no earlier kernel: those of a single row's first eights into
  /// registers, all others to the L2.
  __device__ void fetch_norm(const LinearArgs& p, const WarpPart& part) {
    const float* weights = p.norm + part.first_step * kStepInputs;
    for (int step = part.lane; step < steps_; step += kWarpLanes) prefetch_norm(weights + step * kPrefetchedFloats);
    if constexpr (kRows == 1) {
#pragma unroll
      for (int i = 0; i < kHeldEights; ++i) {
        const int at = part.lane + i * kWarpLanes;
        if (at < steps_ * kLanes) held_[i] = NormWeights(weights + at * kLaneInputs);
      }
    }
  }

  /// Normalises the rows in place; k is a multiple of 32, all of it the block's. After wait(), by all threads.
  __device__ void normalise(unsigned char* shared, const LinearArgs& p, const WarpPart& part) const {
    const float* weights = p.norm + part.first_step * kStepInputs;
    if constexpr (kRows == 1) {
      float sum = 0.0F;
      for (int at = part.lane; at < steps_ * kLanes; at += kWarpLanes) sum = add_squares(memory_[at], sum);
      for (int distance = 4; distance < kWarpLanes; distance *= 2) sum += __shfl_xor_sync(0xffffffffU, sum, distance);
      const float scale = scale_of_row<1>(shared, p, part, 0, part.lane == 0, sum_of_quarters(sum));
#pragma unroll
      for (int i = 0; i < kHeldEights; ++i) {
        const int at = part.lane + i * kWarpLanes;
        if (at < steps_ * kLanes) memory_[at] = held_[i].scaled(memory_[at], scale);
      }
      for (int at = part.lane + kHeldEights * kWarpLanes; at < steps_ * kLanes; at += kWarpLanes) {
        memory_[at] = NormWeights(weights + at * kLaneInputs).scaled(memory_[at], scale);
      }
    } else if constexpr (kRows == 8) {
      const float sum = squares_of_quarter(read_, steps_);
      const float scale = scale_of_row<8>(shared, p, part, part.lane / 4, part.lane % 4 == 0, sum);
      for (int step = 0; step < steps_; ++step) {
        uint4& mine = memory_[step * kLanes + part.lane];
        mine = NormWeights(weights + step * kStepInputs + part.lane % 4 * kLaneInputs).scaled(mine, scale);
      }
    }
    __syncwarp();
  }

  /// The operand of 8 rows at one step of the warp's.
  __device__ uint4 at(int step, int row_group) const { return read_[(row_group * steps_ + step) * kLanes]; }

 private:
  uint4* memory_;
  const uint4* read_;
  int steps_;
  NormWeights held_[kHeldEights > 0 ? kHeldEights : 1];
};

/// x of 8 rows and kSteps whole steps of a warp in registers: what its lanes multiply with.
template <int kSteps>
class RegisterInput {
 public:
  __device__ RegisterInput(unsigned char*, const LinearArgs& p, const WarpPart& part)
      : has_row_(part.lane / 4 < p.rows),
        from_(p.x + part.group * p.group_x + static_cast<long>(part.first_step) * kStepInputs + part.lane % 4 * 8 +
              (has_row_ ? part.lane / 4 * p.x_stride : 0)) {}

  __device__ void start(const LinearArgs&, const WarpPart&) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      x_[step] = uint4{};
      if (has_row_) x_[step] = __ldcg(reinterpret_cast<const uint4*>(from_ + step * kStepInputs));
    }
  }

  __device__ void wait() const {}

  __device__ uint4 at(int step, int) const { return x_[step]; }

 private:
  bool has_row_;
  const __half* from_;
  uint4 x_[kSteps];
};

}  // namespace qpn8::cuda
