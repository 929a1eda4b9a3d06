#pragma once

#include <type_traits>

#include "kernels/cuda/qpn8_code_ring.cuh"
#include "kernels/cuda/qpn8_input.cuh"
#include "kernels/cuda/qpn8_tensor_core.cuh"

namespace qpn8::cuda {

/// The sums of one tile, 16 channels by 8 kRowGroups rows, over a warp's part of k.
template <int kRowGroups>
struct TileSum {
  float value[kRowGroups][4] = {};
};

/// Four independent chains of products, so that none waits for the tensor core's latency; added up pairwise.
template <int kRowGroups>
class Chains {
 public:
  template <int kFirst>
  __device__ void add_step(const uint4& codes, const uint4& x, int row_group) {
    multiply_accumulate(chain_[kFirst][row_group], codes.x, codes.y, x.x, x.y);
    multiply_accumulate(chain_[kFirst + 1][row_group], codes.z, codes.w, x.z, x.w);
  }

  /// sum += chains * scale, and the chains begin again.
  __device__ void fold_into(TileSum<kRowGroups>& sum, float scale) {
#pragma unroll
    for (int group = 0; group < kRowGroups; ++group) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float total = (chain_[0][group][i] + chain_[1][group][i]) + (chain_[2][group][i] + chain_[3][group][i]);
        sum.value[group][i] = fmaf(total, scale, sum.value[group][i]);
#pragma unroll
        for (auto& chain : chain_) chain[group][i] = 0;
      }
    }
  }

 private:
  float chain_[4][kRowGroups][4] = {};
};

/// Block scales of a unit's tiles for a warp's part of k: a lane holds that of one block, the first 32 of them.
template <int kUnitTiles>
class WarpScales {
 public:
  __device__ WarpScales(const LinearArgs& p, const WarpPart& part)
      : lane_(part.lane), blocks_(((p.steps - 1) >> p.block_shift) + 1) {
    // A warp without steps is at the end of k, where no block is.
    first_ = min(part.first_step >> p.block_shift, blocks_ - 1);
    last_ = max(first_, (part.first_step + part.steps - 1) >> p.block_shift);
  }

  __device__ void fetch(const LinearArgs& p, int tile, int end) {
#pragma unroll
    for (int t = 0; t < kUnitTiles; ++t) {
      row_[t] = p.scales + static_cast<long>(min(tile + t, end - 1) >> p.block_tile_shift) * blocks_ + first_;
      mine_[t] = row_[t][min(lane_, last_ - first_)];
    }
  }

  /// That of block `block` of the warp's part, for tile t of the unit.
  __device__ float at(int t, int block) const {
    if (last_ - first_ < kWarpLanes) return __shfl_sync(0xffffffffU, mine_[t], block);
    return row_[t][block];
  }

  __device__ int first() const { return first_; }

 private:
  int lane_;
  int blocks_;     ///< of k
  int first_ = 0;  ///< of the warp's part
  int last_ = 0;
  const float* row_[kUnitTiles];
  float mine_[kUnitTiles];
};

/// The sum of one tile over a warp's part of k, for a form as in KernelForm.
template <int kRows, int kUnitTiles, ScaleMode kScales, int kChunk, bool kResident>
class TileProduct {
  static constexpr int kRowGroups = kRows == 16 ? 2 : 1;
  static constexpr int kAlignedShift = 2;  // 128 k are four steps

 public:
  using Sum = TileSum<kRowGroups>;
  using Scales = WarpScales<kUnitTiles>;
  using Input = std::conditional_t<kResident && kRows == 8, RegisterInput<kChunk>, WarpInput<kRows>>;

  __device__ TileProduct(const LinearArgs& p, const WarpPart& part, const Input& x)
      : x_(x),
        first_step_(part.first_step),
        steps_(part.steps),
        chunk_(kChunk > 0 ? kChunk : p.schedule.chunk_steps),
        block_shift_(kScales == ScaleMode::aligned_block ? kAlignedShift : p.block_shift) {}

  /// Tile `tile` of the unit; its chunks are popped off the ring.
  __device__ Sum run(CodeRing& ring, const Scales& scales, int tile) {
    Sum sum;
    Chains<kRowGroups> chains;
    if constexpr (kResident) {
      add_pairs(ring.resident(tile, kChunk), 0, kChunk, chains, sum, scales, tile);
    } else {
      for (int begin = 0; begin < steps_; begin += chunk_) {
        add_chunk(ring.front(), begin, chains, sum, scales, tile);
        ring.pop();
      }
    }
    if constexpr (kScales == ScaleMode::channel) chains.fold_into(sum, 1.0F);
    return sum;
  }

 private:
  static constexpr int kUnroll = kChunk > 0 ? (kChunk + 1) / 2 : 2;

  __device__ void add_chunk(const uint4* codes, int begin, Chains<kRowGroups>& chains, Sum& sum, const Scales& scales,
                            int tile) {
    const int count = kChunk > 0 ? kChunk : min(chunk_, steps_ - begin);
    if (kScales == ScaleMode::block && (block_shift_ == 0 || (first_step_ + begin) % 2 != 0)) {
      add_single_steps(codes, begin, count, chains, sum, scales, tile);
    } else {
      add_pairs(codes, begin, count, chains, sum, scales, tile);
    }
  }

  template <int kFirst>
  __device__ void add_step(const uint4* codes, int step, Chains<kRowGroups>& chains) {
    const uint4 now = *codes;
#pragma unroll
    for (int group = 0; group < kRowGroups; ++group) chains.template add_step<kFirst>(now, x_.at(step, group), group);
  }

  __device__ void add_pairs(const uint4* codes, int begin, int count, Chains<kRowGroups>& chains, Sum& sum,
                            const Scales& scales, int tile) {
#pragma unroll kUnroll
    for (int at = 0; at + 1 < count; at += 2) {
      add_step<0>(codes + at * kWarpLanes, begin + at, chains);
      add_step<2>(codes + (at + 1) * kWarpLanes, begin + at + 1, chains);
      fold_after(begin, at + 1, count, chains, sum, scales, tile);
    }
    if (count % 2 != 0) {
      add_step<0>(codes + (count - 1) * kWarpLanes, begin + count - 1, chains);
      fold_after(begin, count - 1, count, chains, sum, scales, tile);
    }
  }

  __device__ void add_single_steps(const uint4* codes, int begin, int count, Chains<kRowGroups>& chains, Sum& sum,
                                   const Scales& scales, int tile) {
    for (int at = 0; at < count; ++at) {
      add_step<0>(codes + at * kWarpLanes, begin + at, chains);
      fold_after(begin, at, count, chains, sum, scales, tile);
    }
  }

  /// The sums of a block of k are scaled before those of the next are begun.
  __device__ void fold_after(int begin, int at, int count, Chains<kRowGroups>& chains, Sum& sum, const Scales& scales,
                             int tile) {
    if constexpr (kScales == ScaleMode::aligned_block) {
      // `at` is a constant where the chunk is one: so is the place of each fold.
      if (at % 4 == 3 || at + 1 == count) chains.fold_into(sum, scales.at(tile, (begin + at) >> kAlignedShift));
    }
    if constexpr (kScales == ScaleMode::block) {
      const int next = first_step_ + begin + at + 1;
      if ((next & ((1 << block_shift_) - 1)) == 0 || begin + at + 1 == steps_) {
        chains.fold_into(sum, scales.at(tile, ((next - 1) >> block_shift_) - scales.first()));
      }
    }
  }

  const Input& x_;
  int first_step_;
  int steps_;
  int chunk_;
  int block_shift_;
};

}  // namespace qpn8::cuda
