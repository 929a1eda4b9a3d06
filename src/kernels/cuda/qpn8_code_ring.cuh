#pragma once

#include "kernels/cuda/qpn8_copy.cuh"

namespace qpn8::cuda {

/// One warp's stream of code chunks from device to shared memory: tile after tile, within a tile chunk after chunk,
/// `slots` of them in flight. Bulk copies that report to a barrier a slot where there are such, else 16 bytes a lane.
class CodeRing {
 public:
  /// The stream of `tiles` tiles of `steps` steps each, tile_bytes apart. Starts to copy.
  __device__ CodeRing(unsigned char* ring, unsigned long long* barriers, const ScheduleShape& shape,
                      const unsigned char* codes, long tile_bytes, int steps, int tiles)
      : ring_(ring),
        barriers_(shared_address(barriers)),
        slots_(shape.slots),
        chunk_(shape.chunk_steps),
        source_(codes),
        tile_bytes_(tile_bytes),
        steps_(steps),
        left_(tiles * steps),
        lane_(static_cast<int>(threadIdx.x) % kWarpLanes) {
    if (kBulkCopies && lane_ == 0) {
      for (int slot = 0; slot < slots_; ++slot) init_barrier(barrier(slot));
      publish_barriers();
    }
    for (int slot = 0; slot < slots_; ++slot) start_copy();
    __syncwarp();
  }

  /// Waits for the chunk at the front and returns this lane's 16 bytes of its first step; those of the next step are
  /// kStepBytes on.
  __device__ const uint4* front() const {
    if constexpr (kBulkCopies) {
      wait_barrier(barrier(front_slot_), phase_);
    } else {
      wait_lane_copies<kLaneCopySlots - 1>();
    }
    return reinterpret_cast<const uint4*>(ring_ + front_slot_ * chunk_ * kStepBytes) + lane_;
  }

  /// The same for the chunk in slot `slot`, where every chunk has its own.
  __device__ const uint4* resident(int slot, int chunk) const {
    return reinterpret_cast<const uint4*>(ring_ + slot * chunk * kStepBytes) + lane_;
  }
  __device__ void wait_resident(int slot) const { wait_barrier(barrier(slot), 0); }

  /// Gives the front chunk's slot to the next copy. All lanes have read it.
  __device__ void pop() {
    if (!kBulkCopies || left_ > 0) {
      __syncwarp();
      start_copy();
    }
    if (++front_slot_ == slots_) {
      front_slot_ = 0;
      phase_ ^= 1U;
    }
  }

 private:
  __device__ void start_copy() {
    if (left_ > 0) {
      const int here = min(chunk_, steps_ - step_);
      const unsigned char* from = source_ + static_cast<long>(step_) * kStepBytes;
      const unsigned to = shared_address(ring_ + back_slot_ * chunk_ * kStepBytes);
      if constexpr (kBulkCopies) {
        if (lane_ == 0) {
          expect_bytes(barrier(back_slot_), here * kStepBytes);
          copy_bulk_once(to, from, here * kStepBytes, barrier(back_slot_));
        }
      } else {
        for (int at = lane_ * kLaneBytes; at < here * kStepBytes; at += kStepBytes) {
          copy_lane(to + static_cast<unsigned>(at), from + at);
        }
      }
      advance(here);
    }
    if constexpr (!kBulkCopies) commit_lane_copies();
  }

  __device__ void advance(int steps) {
    left_ -= steps;
    if (++back_slot_ == slots_) back_slot_ = 0;
    step_ += steps;
    if (step_ == steps_) {
      step_ = 0;
      source_ += tile_bytes_;
    }
  }

  __device__ unsigned barrier(int slot) const { return barriers_ + static_cast<unsigned>(slot) * kBarrierBytes; }

  unsigned char* ring_;
  unsigned barriers_;
  int slots_;
  int chunk_;
  const unsigned char* source_;
  long tile_bytes_;
  int steps_;
  int left_;  ///< steps to be copied yet
  int lane_;
  int step_ = 0;  ///< of the tile being copied
  int back_slot_ = 0;
  int front_slot_ = 0;
  unsigned phase_ = 0;
};

}  // namespace qpn8::cuda
