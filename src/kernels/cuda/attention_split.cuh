#pragma once

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/head_work.cuh"
#include "kernels/cuda/launch.cuh"

// One split of attention: what a block of eight warps computes of up to four query heads over 64 positions.

namespace qpn8::cuda {

inline constexpr int kAttentionWarps = 8;
inline constexpr int kAttentionThreads = kAttentionWarps * kWarpSize;
inline constexpr int kSplit = static_cast<int>(kAttentionSplit);
inline constexpr int kPositionsPerWarp = kSplit / kAttentionWarps;
inline constexpr int kHeadsPerBlock = 4;  // query heads of one key head that share its keys and values
inline constexpr int kDimsPerLane = 4;
inline constexpr int kDimsPerChunk = kWarpSize * kDimsPerLane;
inline constexpr int kMostHeadFloats = kHeadsPerBlock * static_cast<int>(kMaxHeadDim);

/// One launch, as its kernels see it.
struct AttentionCall {
  KvLayer layer;
  MatrixView<const __half> q;
  RowPlaces places;
  AttentionRule rule;
  int splits;
  float* partial;  ///< [row][head][split][head_dim + 2]: a split's sums, then its largest score and sum of weights
  MatrixView<__half> out;
  HeadWorks heads;      ///< of q, k and v, where the kernel prepares them
  bool earlier_stored;  ///< keys and values of earlier positions lie in the cache before any kernel of the pass runs

  __device__ float* partial_at(long row, long head, long split) const {
    return partial + ((row * rule.heads + head) * splits + split) * (layer.head_dim + 2);
  }
};

/// The splits that hold a position which a row sees.
struct SplitRange {
  int first;
  int end;
};

/// What a block works on: one split of one row for some heads of one key head. The row sees positions [first, last].
struct AttentionPart {
  int row;
  int kv_head;
  int split;
  int first_head;  ///< of all query heads
  int heads;
  bool is_first_chunk;  ///< of the key head's query heads
  int first;
  int last;
  int slot;

  __device__ explicit AttentionPart(const AttentionCall& call) {
    const int group = static_cast<int>(call.rule.heads / call.layer.kv_heads);
    const int chunks = (group + kHeadsPerBlock - 1) / kHeadsPerBlock;
    const int chunk = static_cast<int>(blockIdx.y) % chunks;
    split = static_cast<int>(blockIdx.x);
    kv_head = static_cast<int>(blockIdx.y) / chunks;
    first_head = kv_head * group + chunk * kHeadsPerBlock;
    heads = min(kHeadsPerBlock, group - chunk * kHeadsPerBlock);
    is_first_chunk = chunk == 0;
    row = static_cast<int>(blockIdx.z);
    last = call.places.positions[row];
    slot = call.places.slots[row];
    first = call.rule.window > 0 ? max(0, last - static_cast<int>(call.rule.window) + 1) : 0;
  }

  /// The splits that hold a position the row sees are [first_split, end_split).
  __device__ int first_split() const { return first / kSplit; }
  __device__ int end_split() const { return last / kSplit + 1; }
  __device__ bool is_seen() const { return split >= first_split() && split < end_split(); }
  __device__ bool has_last() const { return last / kSplit == split; }
};

/// Four numbers of a head as the cache holds them.
template <class T>
struct CachedFour;
template <>
struct CachedFour<float> {
  float4 bits = {};
  __device__ void load(const float* at) { bits = __ldcg(reinterpret_cast<const float4*>(at)); }
  __device__ float4 get() const { return bits; }
};
template <>
struct CachedFour<__half> {
  uint2 bits = {};
  __device__ void load(const __half* at) { bits = __ldcg(reinterpret_cast<const uint2*>(at)); }
  __device__ float4 get() const {
    const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&bits.x));
    const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&bits.y));
    return {low.x, low.y, high.x, high.y};
  }
};

__device__ inline float dot(const float4& a, const float4& b, float sum) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

/// The sums of eight values over a warp; lane l gets that of value l / 4. Each exchange halves the values that a lane
/// is still about, so that it takes nine instead of forty.
__device__ inline float sum_of_eight(const float (&values)[kPositionsPerWarp], int lane) {
  float four[4];
  float two[2];
  const bool upper_four = (lane & 16) != 0;
  const bool upper_two = (lane & 8) != 0;
  const bool upper_one = (lane & 4) != 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float given = __shfl_xor_sync(kAllLanes, upper_four ? values[i] : values[i + 4], 16);
    four[i] = (upper_four ? values[i + 4] : values[i]) + given;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float given = __shfl_xor_sync(kAllLanes, upper_two ? four[i] : four[i + 2], 8);
    two[i] = (upper_two ? four[i + 2] : four[i]) + given;
  }
  float one = (upper_one ? two[1] : two[0]) + __shfl_xor_sync(kAllLanes, upper_one ? two[0] : two[1], 4);
  one += __shfl_xor_sync(kAllLanes, one, 2);
  return one + __shfl_xor_sync(kAllLanes, one, 1);
}

/// Shared memory of a block.
struct SplitMemory {
  alignas(16) float queries[kHeadsPerBlock][kMaxHeadDim];
  alignas(16) float key[kMaxHeadDim];  ///< of the row itself, as the cache holds them
  alignas(16) float value[kMaxHeadDim];
  float scores[kHeadsPerBlock][kSplit];
  float stats[kHeadsPerBlock][2];  ///< largest score, sum of weights
  alignas(16) float sums[kAttentionWarps][kHeadsPerBlock][kDimsPerChunk];
};

/// The work of one block. A warp takes eight positions and asks for all their keys and values before it uses the first,
/// since one block alone has to hide the memory's latency. kChunks: 128 dimensions each.
template <class T, int kChunks>
class SplitSum {
 public:
  __device__ SplitSum(const AttentionCall& call, const AttentionPart& part, SplitMemory& memory)
      : call_(call),
        part_(part),
        memory_(memory),
        head_dim_(static_cast<int>(call.layer.head_dim)),
        warp_(static_cast<int>(threadIdx.x) / kWarpSize),
        lane_(static_cast<int>(threadIdx.x) % kWarpSize),
        first_position_(part.split * kSplit + warp_ * kPositionsPerWarp) {}

  /// Asks for the keys and values of the positions seen, up to `last`.
  __device__ void load_cache(int last) {
    const long base = kv_offset(call_.layer, part_.slot, part_.kv_head, first_position_);
    const T* keys = reinterpret_cast<const T*>(call_.layer.keys) + base;
    const T* values = reinterpret_cast<const T*>(call_.layer.values) + base;
#pragma unroll
    for (int i = 0; i < kPositionsPerWarp; ++i) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (dim(c) >= head_dim_ || first_position_ + i < part_.first || first_position_ + i > last) continue;
        key_[i][c].load(keys + i * head_dim_ + dim(c));
        value_[i][c].load(values + i * head_dim_ + dim(c));
      }
    }
  }

  /// Queries as the projection and prepare_heads() left them.
  __device__ void load_queries() {
    const __half* q = call_.q.data + part_.row * call_.q.stride + part_.first_head * head_dim_;
    for (int i = static_cast<int>(threadIdx.x); i < part_.heads * head_dim_; i += kAttentionThreads) {
      memory_.queries[i / head_dim_][i % head_dim_] = __half2float(q[i]);
    }
    __syncthreads();
  }

  /// The same from the projection alone, a warp a head; the block that has the row's own position also prepares its key
  /// and value, which only the first chunk's block stores.
  __device__ void prepare(const LaneNorm& norm) {
    const int jobs = part_.heads + (part_.has_last() ? 2 : 0);
    if (warp_ < jobs) {
      const int which = warp_ < part_.heads ? 0 : 1 + warp_ - part_.heads;
      const HeadWork& work = call_.heads.works[which];
      float* head = which == 0 ? memory_.queries[warp_] : which == 1 ? memory_.key : memory_.value;
      const int index = which == 0 ? part_.first_head + warp_ : part_.kv_head;
      load_head(work, call_.heads.rotation, part_.row, index, norm, head_dim_, lane_, head);
      for (int i = lane_; i < head_dim_; i += kWarpSize) {
        if (which == 0 || sizeof(T) == sizeof(__half)) head[i] = __half2float(__float2half_rn(head[i]));
      }
      if (which > 0 && part_.is_first_chunk) {
        std::byte* cache = which == 1 ? call_.layer.keys : call_.layer.values;
        T* place = reinterpret_cast<T*>(cache) + kv_offset(call_.layer, part_.slot, part_.kv_head, part_.last);
        store_head(place, head, head_dim_, lane_);
      }
    }
    __syncthreads();
    take_own_position();
  }

  /// The weights of this lane's prepare(), which may be asked for early.
  __device__ LaneNorm lane_norm() const {
    const bool is_query = warp_ < part_.heads;
    const float* norm = is_query                                   ? call_.heads.works[0].norm
                        : warp_ == part_.heads && part_.has_last() ? call_.heads.works[1].norm
                                                                   : nullptr;
    return LaneNorm(norm, head_dim_, lane_);
  }

  /// Scores of all heads, then their weights: memory.scores and memory.stats.
  __device__ void weigh() {
#pragma unroll
    for (int h = 0; h < kHeadsPerBlock; ++h) {
      if (h >= part_.heads) break;
      float score[kPositionsPerWarp] = {};
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (dim(c) >= head_dim_) continue;
        const float4 query = *reinterpret_cast<const float4*>(&memory_.queries[h][dim(c)]);
#pragma unroll
        for (int i = 0; i < kPositionsPerWarp; ++i) score[i] = dot(query, key(i, c), score[i]);
      }
      const float total = sum_of_eight(score, lane_) * call_.rule.scale;
      const int position = first_position_ + lane_ / 4;
      const bool seen = position >= part_.first && position <= part_.last;
      if (lane_ % 4 == 0) memory_.scores[h][warp_ * kPositionsPerWarp + lane_ / 4] = seen ? total : -INFINITY;
    }
    __syncthreads();
    if (warp_ < part_.heads) {
      const float a = memory_.scores[warp_][lane_];
      const float b = memory_.scores[warp_][lane_ + kWarpSize];
      const float largest = warp_max(fmaxf(a, b));
      const float weight_a = __expf(a - largest);
      const float weight_b = __expf(b - largest);
      memory_.scores[warp_][lane_] = weight_a;
      memory_.scores[warp_][lane_ + kWarpSize] = weight_b;
      const float total = warp_sum(weight_a + weight_b);
      if (lane_ == 0) {
        memory_.stats[warp_][0] = largest;
        memory_.stats[warp_][1] = total;
      }
    }
    __syncthreads();
  }

  /// Calls put(head of the block, dimension, sum) for every output of the block, each by one thread.
  template <class Put>
  __device__ void sum_values(const Put& put) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
#pragma unroll
      for (int h = 0; h < kHeadsPerBlock; ++h) {
        if (h >= part_.heads) break;
        float4 sum = {};
#pragma unroll
        for (int i = 0; i < kPositionsPerWarp; ++i) {
          const float weight = memory_.scores[h][warp_ * kPositionsPerWarp + i];
          const float4 v = value(i, c);
          sum.x = fmaf(weight, v.x, sum.x);
          sum.y = fmaf(weight, v.y, sum.y);
          sum.z = fmaf(weight, v.z, sum.z);
          sum.w = fmaf(weight, v.w, sum.w);
        }
        *reinterpret_cast<float4*>(&memory_.sums[warp_][h][lane_ * kDimsPerLane]) = sum;
      }
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < part_.heads * kDimsPerChunk; i += kAttentionThreads) {
        const int h = i / kDimsPerChunk;
        const int at = i % kDimsPerChunk;
        if (c * kDimsPerChunk + at >= head_dim_) continue;
        float total = 0.0F;
#pragma unroll
        for (int w = 0; w < kAttentionWarps; ++w) total += memory_.sums[w][h][at];
        put(h, c * kDimsPerChunk + at, total);
      }
      if (c + 1 < kChunks) __syncthreads();
    }
  }

 private:
  __device__ int dim(int chunk) const { return (chunk * kWarpSize + lane_) * kDimsPerLane; }
  __device__ bool is_own(int i) const { return own_ == i; }
  __device__ float4 key(int i, int c) const {
    return is_own(i) ? *reinterpret_cast<const float4*>(&memory_.key[dim(c)]) : key_[i][c].get();
  }
  __device__ float4 value(int i, int c) const {
    return is_own(i) ? *reinterpret_cast<const float4*>(&memory_.value[dim(c)]) : value_[i][c].get();
  }
  __device__ void take_own_position() { own_ = part_.last - first_position_; }

  const AttentionCall& call_;
  const AttentionPart& part_;
  SplitMemory& memory_;
  int head_dim_;
  int warp_;
  int lane_;
  int first_position_;
  int own_ = -1;  ///< which of the warp's positions is the row's own, where it was prepared here
  CachedFour<T> key_[kPositionsPerWarp][kChunks];
  CachedFour<T> value_[kPositionsPerWarp][kChunks];
};

/// One output: the splits are added in order, each weighted by how far its largest score is below the largest of all.
/// `largest(s)`, `weight(s)` and `sum(s)` are those of split s.
template <class Largest, class Weight, class Sum>
__device__ float merge_splits(const SplitRange& range, const Largest& largest, const Weight& weight, const Sum& sum) {
  float most = -INFINITY;
  for (int s = range.first; s < range.end; ++s) most = fmaxf(most, largest(s));
  float weights = 0.0F;
  float total = 0.0F;
  for (int s = range.first; s < range.end; ++s) {
    const float factor = __expf(largest(s) - most);
    weights = fmaf(weight(s), factor, weights);
    total = fmaf(sum(s), factor, total);
  }
  return total / weights;
}

}  // namespace qpn8::cuda
