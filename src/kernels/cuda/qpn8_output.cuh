#pragma once

#include "kernels/cuda/qpn8_copy.cuh"
#include "kernels/cuda/qpn8_part.cuh"
#include "kernels/cuda/qpn8_tensor_core.cuh"
#include "kernels/cuda/silu.cuh"

namespace qpn8::cuda {

/// The end of a unit of kUnitTiles tiles: partial sums of the warps, then of the cluster's blocks, meet in shared
/// memory; scale, bias, store. Everything but the sums is worked out beforehand.
/// kEnds: every ProductEnd and paired channels are served; else products are stored in the order of their channels.
template <int kRows, int kUnitTiles, int kWarps, bool kEnds>
class UnitOutput {
  static constexpr int kChannels = kUnitTiles * kTileChannels;
  static constexpr int kRowFloats = kChannels + 4;  // rows of one channel in different banks
  static constexpr int kThreads = kWarps * kWarpLanes;
  static constexpr int kOutputs = kRows * kChannels;
  static constexpr int kTurns = (kOutputs + kThreads - 1) / kThreads;

 public:
  __device__ UnitOutput(unsigned char* shared, const LinearArgs& p, const WarpPart& part)
      : sums_(shared + p.shared.sums),
        peers_(reinterpret_cast<float*>(shared + p.shared.peers)),
        barriers_(shared_address(shared + p.shared.peer_barriers)),
        thread_(static_cast<int>(threadIdx.x)),
        rank_(part.rank) {
    const int split_shift = 31 - __clz(p.schedule.split);
    mine_ = kOutputs >> split_shift;
    mine_shift_ = 31 - __clz(mine_);
  }

  /// Before the blocks of the cluster meet; expect_first() after it, and before sums of peers are waited for.
  __device__ void make_barriers() const {
    if (thread_ != 0) return;
    for (unsigned parity = 0; parity < 2; ++parity) init_barrier(barriers_ + parity * kBarrierBytes);
    publish_barriers();
  }
  __device__ void expect_first() const {
    if (thread_ != 0) return;
    for (int parity = 0; parity < 2; ++parity) expect_sums(parity);
  }

  /// Reads what the end of the unit of `channels` channels from `channel` on needs.
  __device__ void fetch(const LinearArgs& p, bool block_scales, int channel, int channels) {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = rank_ * mine_ + mine(turn);
      const int row = i / kChannels;
      const int column = i % kChannels;
      const int n = channel + column;
      const bool there = mine(turn) < mine_ && row < p.rows && column < channels && n < p.columns;
      at_[turn] = there ? row * p.y_stride + column_of(p, n) : -1;
      scale_[turn] = there && !block_scales ? p.scales[n] : 1.0F;
      bias_[turn] = there && p.bias != nullptr ? p.bias[n] : 0.0F;
    }
  }

  /// Reads what the product is added to; after the wait for earlier kernels, which may have written it.
  __device__ void fetch_added(const LinearArgs& p) {
    if (!kEnds || p.end != ProductEnd::add) return;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      added_[turn] = at_[turn] >= 0 ? __half2float(static_cast<const __half*>(p.y)[at_[turn]]) : 0.0F;
    }
  }

  template <class Sum>
  __device__ void put(const LinearArgs& p, const WarpPart& part, int tile, const Sum& sum) const {
    float* at = reinterpret_cast<float*>(sums_ + parity_ * p.shared.sums_parity + part.warp * p.shared.sums_stride) +
                tile * kTileChannels + part.lane / 4;
    const int row = part.lane % 4 * 2;
    if constexpr (kRows == 1) {
      if (row == 0) {
        at[0] = sum.value[0][0];
        at[8] = sum.value[0][2];
      }
    } else {
#pragma unroll
      for (int group = 0; group < kRows / 8; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) at[(group * 8 + row + i % 2) * kRowFloats + i / 2 * 8] = sum.value[group][i];
      }
    }
  }

  /// Adds up and stores what fetch() was called for.
  __device__ void finish(const LinearArgs& p) {
    __syncthreads();
    if (p.schedule.split == 1) {
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) store(p, turn, at_[turn] >= 0 ? sum_of_warps(p, mine(turn)) : 0.0F);
    } else {
      finish_with_peers(p);
    }
    parity_ ^= 1;
  }

 private:
  /// Of the mine_ outputs that this block finishes, the one of this thread's turn.
  __device__ int mine(int turn) const { return thread_ + turn * kThreads; }

  __device__ float sum_of_warps(const LinearArgs& p, int i) const {
    const unsigned char* at = sums_ + parity_ * p.shared.sums_parity + (i / kChannels * kRowFloats + i % kChannels) * 4;
    float part[kWarps];  // all loads before the first sum
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp)
      part[warp] = *reinterpret_cast<const float*>(at + warp * p.shared.sums_stride);
    float sum = part[0];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) sum += part[warp];
    return sum;
  }

  /// Every block finishes its share of the outputs. All send it their sums, itself included, and a barrier counts the
  /// bytes. No peer can be two units ahead, because it needs this block's sums of the unit between: two buffers do.
  __device__ void finish_with_peers(const LinearArgs& p) {
    float* peers = peers_ + parity_ * kOutputs;
    const unsigned barrier = barriers_ + static_cast<unsigned>(parity_) * kBarrierBytes;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = mine(turn);
      if (i >= kOutputs) continue;
      send_to_peer(peers + rank_ * mine_ + (i & (mine_ - 1)), barrier, static_cast<unsigned>(i >> mine_shift_),
                   sum_of_warps(p, i));
    }
    wait_barrier(barrier, phase_);
    if (thread_ == 0) expect_sums(parity_);
    phase_ ^= static_cast<unsigned>(parity_);
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      float sum = 0;
      if (at_[turn] >= 0) {
        for (int block = 0; block < p.schedule.split; ++block) sum += peers[block * mine_ + mine(turn)];
      }
      store(p, turn, sum);
    }
  }

  __device__ void expect_sums(int parity) const {
    expect_bytes(barriers_ + static_cast<unsigned>(parity) * kBarrierBytes, kOutputs * static_cast<int>(sizeof(float)));
  }

  /// Where a stored channel goes in a row of y.
  __device__ static int column_of(const LinearArgs& p, int n) {
    if (!kEnds || p.paired_half == 0) return n;
    const int in_half = n / kTileChannels * kPairChannels + n % kPairChannels;
    const bool is_up = (n & kPairChannels) != 0;
    return is_up && p.end != ProductEnd::gate ? p.paired_half + in_half : in_half;
  }

  /// All lanes of a warp come here together, those without an output too.
  __device__ void store(const LinearArgs& p, int turn, float sum) const {
    // The factor of the decode first: it is exact, and kDecodeFactor * scale might not be finite.
    const float value = fmaf(sum * kDecodeFactor, scale_[turn], bias_[turn]);
    __half half = __float2half_rn(value);
    bool stores = at_[turn] >= 0;
    if (kEnds && p.end == ProductEnd::add) half = __float2half_rn(added_[turn] + __half2float(half));
    if (kEnds && p.end == ProductEnd::gate) {
      // Outputs lie in the order of channels, so that eight lanes on is the same channel of up.
      const float up = __shfl_xor_sync(0xffffffffU, __half2float(half), kPairChannels);
      half = __float2half_rn(silu(__half2float(half)) * up);
      stores = stores && (thread_ & kPairChannels) == 0;
    }
    if (!stores) return;
    if (p.y_is_float) {
      static_cast<float*>(p.y)[at_[turn]] = value;
    } else {
      static_cast<__half*>(p.y)[at_[turn]] = half;
    }
  }

  unsigned char* sums_;
  float* peers_;
  unsigned barriers_;
  unsigned phase_ = 0;
  int thread_;
  int rank_;
  int mine_shift_;
  int mine_;  ///< outputs that this block finishes: a power of two where k is split
  int parity_ = 0;
  long at_[kTurns];  ///< elements from the start of y; -1: not this thread's, or outside y
  float scale_[kTurns];
  float bias_[kTurns];
  float added_[kTurns];
};

}  // namespace qpn8::cuda
