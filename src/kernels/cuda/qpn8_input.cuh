#pragma once

#include "kernels/cuda/qpn8_copy.cuh"
#include "kernels/cuda/qpn8_part.cuh"

namespace qpn8::cuda {

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

  /// The operand of 8 rows at one step of the warp's.
  __device__ uint4 at(int step, int row_group) const { return read_[(row_group * steps_ + step) * kLanes]; }

 private:
  uint4* memory_;
  const uint4* read_;
  int steps_;
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
