#include <algorithm>

#include "base/check.hpp"
#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/launch.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kSplit = static_cast<int>(kAttentionSplit);
constexpr int kPositionsPerWarp = kSplit / kWarps;
constexpr int kHeadsPerBlock = 8;  // query heads of one key head that share its keys and values
constexpr int kDimsPerLane = 4;
constexpr int kDimsPerChunk = kWarpSize * kDimsPerLane;
constexpr int kMergeThreads = 128;
constexpr int kMostBlocksInCluster = 8;  // what every GPU with clusters has

struct Call {
  KvLayer layer;
  MatrixView<const __half> q;
  RowPlaces places;
  AttentionRule rule;
  int splits;
  // [row][head][split][head_dim + 2]: a split's unnormalised sum, then its largest score and the sum of its weights
  float* partial;
  MatrixView<__half> out;

  __device__ float* partial_at(long row, long head, long split) const {
    return partial + ((row * rule.heads + head) * splits + split) * (layer.head_dim + 2);
  }
  /// The positions that a row sees are [first, last].
  __device__ int last(long row) const { return places.positions[row]; }
  __device__ int first(long row) const {
    const long behind = rule.window > 0 ? last(row) - rule.window + 1 : 0;
    return static_cast<int>(behind > 0 ? behind : 0);
  }
};

__device__ float4 load_four(const float* at) { return *reinterpret_cast<const float4*>(at); }
__device__ float4 load_four(const __half* at) {
  const uint2 bits = *reinterpret_cast<const uint2*>(at);
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&bits.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&bits.y));
  return {low.x, low.y, high.x, high.y};
}

__device__ float dot(const float4& a, const float4& b) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, a.w * b.w)));
}

/// What a block works on: one split of one row for some heads of one key head.
struct Part {
  int row;
  int kv_head;
  int split;
  int first_head;  // of all query heads
  int heads;
};

__device__ Part part_of_block(const Call& call) {
  const int group = static_cast<int>(call.rule.heads / call.layer.kv_heads);
  const int chunks = (group + kHeadsPerBlock - 1) / kHeadsPerBlock;
  Part part;
  part.split = blockIdx.x;
  part.kv_head = blockIdx.y / chunks;
  const int chunk = blockIdx.y % chunks;
  part.first_head = part.kv_head * group + chunk * kHeadsPerBlock;
  part.heads = min(kHeadsPerBlock, group - chunk * kHeadsPerBlock);
  part.row = blockIdx.z;
  return part;
}

// A warp takes eight positions of the split and asks for all their keys and values before it uses the first, since
// one block alone has to hide the memory's latency. kChunks: 128 dimensions each.
template <class T, int kChunks>
__device__ void sum_split(const Call& call, const Part& part) {
  __shared__ alignas(16) float queries[kHeadsPerBlock][kMaxHeadDim];
  const int head_dim = static_cast<int>(call.layer.head_dim);
  const __half* q = call.q.data + part.row * call.q.stride + part.first_head * head_dim;
  for (int i = threadIdx.x * kDimsPerLane; i < part.heads * head_dim; i += kThreads * kDimsPerLane) {
    *reinterpret_cast<float4*>(&queries[i / head_dim][i % head_dim]) = load_four(q + i);
  }
  const int last = call.last(part.row);
  const int first = call.first(part.row);
  const int begin = part.split * kSplit;
  if (begin > last || begin + kSplit <= first) return;

  __shared__ float scores[kHeadsPerBlock][kSplit];
  __shared__ alignas(16) float sums[kWarps][kHeadsPerBlock][kDimsPerChunk];
  const int warp = threadIdx.x / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const long sequence = static_cast<long>(call.places.slots[part.row]) * call.layer.kv_heads + part.kv_head;
  const long base = (sequence * call.layer.capacity + begin + warp * kPositionsPerWarp) * head_dim;
  const T* keys = reinterpret_cast<const T*>(call.layer.keys) + base;
  const T* values = reinterpret_cast<const T*>(call.layer.values) + base;
  const auto seen = [&](int i) {
    const int position = begin + warp * kPositionsPerWarp + i;
    return position >= first && position <= last;
  };
  float4 key[kPositionsPerWarp][kChunks];
  float4 value[kPositionsPerWarp][kChunks];
  for (int i = 0; i < kPositionsPerWarp; ++i) {
    for (int c = 0; c < kChunks; ++c) {
      const int dim = (c * kWarpSize + lane) * kDimsPerLane;
      const bool there = dim < head_dim && seen(i);
      key[i][c] = there ? load_four(keys + i * head_dim + dim) : float4{};
      value[i][c] = there ? load_four(values + i * head_dim + dim) : float4{};
    }
  }
  __syncthreads();
  for (int h = 0; h < part.heads; ++h) {
    float score[kPositionsPerWarp] = {};
    for (int c = 0; c < kChunks; ++c) {
      const int dim = (c * kWarpSize + lane) * kDimsPerLane;
      const float4 query = dim < head_dim ? load_four(&queries[h][dim]) : float4{};
      for (int i = 0; i < kPositionsPerWarp; ++i) score[i] += dot(query, key[i][c]);
    }
    for (int i = 0; i < kPositionsPerWarp; ++i) {
      const float total = warp_sum(score[i]) * call.rule.scale;
      if (lane == 0) scores[h][warp * kPositionsPerWarp + i] = seen(i) ? total : -INFINITY;
    }
  }
  __syncthreads();
  // A warp a head: the scores become weights.
  if (warp < part.heads) {
    const float a = scores[warp][lane];
    const float b = scores[warp][lane + kWarpSize];
    const float largest = warp_max(fmaxf(a, b));
    const float weight_a = __expf(a - largest);
    const float weight_b = __expf(b - largest);
    scores[warp][lane] = weight_a;
    scores[warp][lane + kWarpSize] = weight_b;
    const float total = warp_sum(weight_a + weight_b);
    if (lane == 0) {
      float* to = call.partial_at(part.row, part.first_head + warp, part.split) + head_dim;
      to[0] = largest;
      to[1] = total;
    }
  }
  __syncthreads();
  for (int c = 0; c < kChunks; ++c) {
    for (int h = 0; h < part.heads; ++h) {
      float4 sum = {};
      for (int i = 0; i < kPositionsPerWarp; ++i) {
        const float weight = scores[h][warp * kPositionsPerWarp + i];
        sum.x = fmaf(weight, value[i][c].x, sum.x);
        sum.y = fmaf(weight, value[i][c].y, sum.y);
        sum.z = fmaf(weight, value[i][c].z, sum.z);
        sum.w = fmaf(weight, value[i][c].w, sum.w);
      }
      *reinterpret_cast<float4*>(&sums[warp][h][lane * kDimsPerLane]) = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < part.heads * kDimsPerChunk; i += kThreads) {
      const int h = i / kDimsPerChunk;
      const int dim = i % kDimsPerChunk;
      if (c * kDimsPerChunk + dim >= head_dim) continue;
      float total = 0.0F;
      for (int w = 0; w < kWarps; ++w) total += sums[w][h][dim];
      call.partial_at(part.row, part.first_head + h, part.split)[c * kDimsPerChunk + dim] = total;
    }
    __syncthreads();
  }
}

/// One output: the splits are added in order, each weighted by how far its largest score is below the largest of all.
__device__ void merge_splits(const Call& call, long row, long head, int dim) {
  const int head_dim = static_cast<int>(call.layer.head_dim);
  const int begin = call.first(row) / kSplit;
  const int end = call.last(row) / kSplit + 1;
  float largest = -INFINITY;
  for (int s = begin; s < end; ++s) largest = fmaxf(largest, call.partial_at(row, head, s)[head_dim]);
  float sum = 0.0F;
  float weights = 0.0F;
  for (int s = begin; s < end; ++s) {
    const float* part = call.partial_at(row, head, s);
    const float factor = __expf(part[head_dim] - largest);
    weights = fmaf(part[head_dim + 1], factor, weights);
    sum = fmaf(part[dim], factor, sum);
  }
  call.out.data[row * call.out.stride + head * head_dim + dim] = __float2half_rn(sum / weights);
}

template <class T, int kChunks>
__global__ void __launch_bounds__(kThreads) attend_split(const Call call) {
  wait_for_earlier_kernels();
  sum_split<T, kChunks>(call, part_of_block(call));
}

// A block a head of a row, after attend_split.
__global__ void __launch_bounds__(kMergeThreads) merge(const Call call) {
  wait_for_earlier_kernels();
  for (int dim = threadIdx.x; dim < call.layer.head_dim; dim += kMergeThreads) {
    merge_splits(call, blockIdx.y, blockIdx.x, dim);
  }
}

// Both in one launch, for as many splits as a cluster has blocks: each of them merges a share of the outputs.
template <class T, int kChunks>
__global__ void __launch_bounds__(kThreads) attend_cluster(const Call call) {
#if __CUDA_ARCH__ >= 900
  wait_for_earlier_kernels();
  const Part part = part_of_block(call);
  sum_split<T, kChunks>(call, part);
  __syncthreads();
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  const int head_dim = static_cast<int>(call.layer.head_dim);
  const int step = kThreads * static_cast<int>(gridDim.x);
  for (int i = static_cast<int>(blockIdx.x) * kThreads + threadIdx.x; i < part.heads * head_dim; i += step) {
    merge_splits(call, part.row, part.first_head + i / head_dim, i % head_dim);
  }
#endif
}

template <class T>
auto split_kernel(std::int64_t head_dim, bool cluster) {
  if (head_dim <= kDimsPerChunk) return cluster ? attend_cluster<T, 1> : attend_split<T, 1>;
  return cluster ? attend_cluster<T, 2> : attend_split<T, 2>;
}

}  // namespace

std::size_t attention_scratch_bytes(std::int64_t rows, std::int64_t heads, std::int64_t head_dim, std::int64_t splits) {
  return static_cast<std::size_t>(rows * heads * splits * (head_dim + 2)) * sizeof(float);
}

void attention(const KvLayer& layer, MatrixView<const __half> q, const RowPlaces& places, const AttentionRule& rule,
               std::int64_t splits, float* scratch, MatrixView<__half> out, const Stream& stream) {
  check(layer.head_dim % kDimsPerLane == 0 && layer.head_dim <= kMaxHeadDim && q.stride % kDimsPerLane == 0 &&
            rule.heads % layer.kv_heads == 0,
        "heads that the kernel has lanes for");
  const Call call = {layer, q, places, rule, static_cast<int>(splits), scratch, out};
  const std::int64_t chunks = (rule.heads / layer.kv_heads + kHeadsPerBlock - 1) / kHeadsPerBlock;
  const dim3 parts(static_cast<unsigned>(splits), static_cast<unsigned>(layer.kv_heads * chunks),
                   static_cast<unsigned>(q.rows));
  const bool cluster = stream.overlaps && splits <= kMostBlocksInCluster;
  const auto kernel = layer.dtype == DType::f16 ? split_kernel<__half>(layer.head_dim, cluster)
                                                : split_kernel<float>(layer.head_dim, cluster);
  launch("attention", kernel, parts, kThreads, cluster ? parts.x : 0, stream, call);
  if (cluster) return;
  const dim3 heads(static_cast<unsigned>(rule.heads), static_cast<unsigned>(q.rows));
  launch("merge attention", merge, heads, kMergeThreads, 0, stream, call);
}

}  // namespace qpn8::cuda
