#include <algorithm>

#include "base/check.hpp"
#include "kernels/cuda/attention_split.cuh"
#include "kernels/cuda/qpn8_copy.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kMergeThreads = 128;
// Half of a multiprocessor's registers: beside it a product asks for its codes.
constexpr int kAttentionBlocks = 2;
constexpr int kMostBlocksInCluster = 8;  // what every GPU with clusters has

/// What a split's block does before its scores: kPrepare as attention_with_heads(), else as attention().
template <bool kPrepare, class Sum>
__device__ void gather_operands(const AttentionCall& call, const AttentionPart& part, Sum& sum) {
  if constexpr (kPrepare) {
    sum.load_cache(part.last - 1);
    const LaneNorm norm = sum.lane_norm();
    wait_for_earlier_kernels();
    sum.prepare(norm);
  } else {
    sum.load_cache(part.last);
    sum.load_queries();
  }
}

// The splits' sums go to memory, for merge() to add up.
template <class T, int kChunks, bool kPrepare>
__global__ void __launch_bounds__(kAttentionThreads, kAttentionBlocks)
    attend_split(const __grid_constant__ AttentionCall call) {
  __shared__ SplitMemory memory;
  allow_next_kernel();
  if (!call.earlier_stored) wait_for_earlier_kernels();
  const AttentionPart part(call);
  if (!part.is_seen()) {
    wait_for_earlier_kernels();
    return;
  }
  SplitSum<T, kChunks> sum(call, part, memory);
  gather_operands<kPrepare>(call, part, sum);
  sum.weigh();
  const int head_dim = static_cast<int>(call.layer.head_dim);
  if (threadIdx.x < 2 * part.heads) {
    const int h = static_cast<int>(threadIdx.x) / 2;
    const int which = static_cast<int>(threadIdx.x) % 2;
    call.partial_at(part.row, part.first_head + h, part.split)[head_dim + which] = memory.stats[h][which];
  }
  sum.sum_values(
      [&](int h, int dim, float total) { call.partial_at(part.row, part.first_head + h, part.split)[dim] = total; });
}

// A block a head of a row, after attend_split.
__global__ void __launch_bounds__(kMergeThreads) merge(const __grid_constant__ AttentionCall call) {
  wait_for_earlier_kernels();
  const long head = blockIdx.x;
  const long row = blockIdx.y;
  const int head_dim = static_cast<int>(call.layer.head_dim);
  const int last = call.places.positions[row];
  const int first = call.rule.window > 0 ? max(0, last - static_cast<int>(call.rule.window) + 1) : 0;
  const SplitRange range = {first / kSplit, last / kSplit + 1};
  for (int dim = static_cast<int>(threadIdx.x); dim < head_dim; dim += kMergeThreads) {
    const auto part = [&](int s) { return call.partial_at(row, head, s); };
    const float merged = merge_splits(
        range, [&](int s) { return part(s)[head_dim]; }, [&](int s) { return part(s)[head_dim + 1]; },
        [&](int s) { return part(s)[dim]; });
    call.out.data[row * call.out.stride + head * head_dim + dim] = __float2half_rn(merged);
  }
}

/// What the blocks of a cluster send each other: every block merges a share of the outputs, and a barrier counts the
/// bytes that it waits for.
struct ClusterMemory {
  alignas(8) unsigned long long barrier;
  float stats[kMostBlocksInCluster][kHeadsPerBlock][2];
  float sums[kMostHeadFloats + kMostBlocksInCluster];  ///< [split][share]
};

/// The exchange, from a block's point of view.
class ClusterMerge {
 public:
  __device__ ClusterMerge(const AttentionCall& call, const AttentionPart& part, ClusterMemory& memory)
      : part_(part),
        memory_(memory),
        barrier_(shared_address(&memory.barrier)),
        blocks_(static_cast<int>(gridDim.x)),
        outputs_(part.heads * static_cast<int>(call.layer.head_dim)),
        share_((outputs_ + blocks_ - 1) / blocks_),
        mine_(max(0, min(share_, outputs_ - part.split * share_))) {
    if (threadIdx.x == 0) {
      init_barrier(barrier_);
      publish_barriers();
      const int senders = part.end_split() - part.first_split();
      expect_bytes(barrier_, senders * static_cast<int>(sizeof(float)) * (mine_ + 2 * part.heads));
    }
    arrive_at_cluster();
  }

  /// Before anything is sent: the peers' barriers are there.
  __device__ void wait_for_peers() const { wait_for_cluster(); }

  __device__ void send_stats(const SplitMemory& split) const {
    const int i = static_cast<int>(threadIdx.x);
    const int floats = 2 * part_.heads;
    if (i >= floats * blocks_) return;
    const int at = i % floats;
    send_to_peer(&memory_.stats[part_.split][at / 2][at % 2], barrier_, static_cast<unsigned>(i / floats),
                 split.stats[at / 2][at % 2]);
  }

  __device__ void send_sum(int output, float sum) const {
    const int rank = output / share_;
    send_to_peer(&memory_.sums[part_.split * share_ + output - rank * share_], barrier_, static_cast<unsigned>(rank),
                 sum);
  }

  /// Calls put(output, value) for this block's share.
  template <class Put>
  __device__ void merge_share(int head_dim, const Put& put) const {
    wait_barrier(barrier_, 0);
    for (int i = static_cast<int>(threadIdx.x); i < mine_; i += kAttentionThreads) {
      const int output = part_.split * share_ + i;
      const int head = output / head_dim;
      put(output,
          merge_splits(
              {part_.first_split(), part_.end_split()}, [&](int s) { return memory_.stats[s][head][0]; },
              [&](int s) { return memory_.stats[s][head][1]; }, [&](int s) { return memory_.sums[s * share_ + i]; }));
    }
  }

 private:
  const AttentionPart& part_;
  ClusterMemory& memory_;
  unsigned barrier_;
  int blocks_;
  int outputs_;  ///< of the key head's chunk of heads
  int share_;    ///< that a block merges
  int mine_;     ///< the last blocks may have fewer
};

// All in one launch, for as many splits as a cluster has blocks.
template <class T, int kChunks, bool kPrepare>
__global__ void __launch_bounds__(kAttentionThreads, kAttentionBlocks)
    attend_cluster(const __grid_constant__ AttentionCall call) {
#if __CUDA_ARCH__ >= 900
  __shared__ SplitMemory memory;
  __shared__ ClusterMemory shared;
  allow_next_kernel();
  if (!call.earlier_stored) wait_for_earlier_kernels();
  const AttentionPart part(call);
  const ClusterMerge exchange(call, part, shared);
  const int head_dim = static_cast<int>(call.layer.head_dim);
  if (part.is_seen()) {
    SplitSum<T, kChunks> sum(call, part, memory);
    gather_operands<kPrepare>(call, part, sum);
    exchange.wait_for_peers();
    sum.weigh();
    exchange.send_stats(memory);
    sum.sum_values([&](int h, int dim, float total) { exchange.send_sum(h * head_dim + dim, total); });
  } else {
    wait_for_earlier_kernels();
    exchange.wait_for_peers();
  }
  __half* out = call.out.data + part.row * call.out.stride + part.first_head * head_dim;
  exchange.merge_share(head_dim, [&](int output, float value) { out[output] = __float2half_rn(value); });
#endif
}

using AttentionKernel = void (*)(AttentionCall);

template <class T, int kChunks>
AttentionKernel kernel_of(bool prepare, bool cluster) {
  if (prepare) return cluster ? attend_cluster<T, kChunks, true> : attend_split<T, kChunks, true>;
  return cluster ? attend_cluster<T, kChunks, false> : attend_split<T, kChunks, false>;
}

AttentionKernel find_kernel(const KvLayer& layer, bool prepare, bool cluster) {
  const bool narrow = layer.head_dim <= kDimsPerChunk;
  if (layer.dtype == DType::f16) {
    return narrow ? kernel_of<__half, 1>(prepare, cluster) : kernel_of<__half, 2>(prepare, cluster);
  }
  return narrow ? kernel_of<float, 1>(prepare, cluster) : kernel_of<float, 2>(prepare, cluster);
}

void run(const AttentionCall& call, std::int64_t rows, bool prepare, const Stream& stream) {
  const KvLayer& layer = call.layer;
  const std::int64_t heads = call.rule.heads;
  check(layer.head_dim % kDimsPerLane == 0 && layer.head_dim <= kMaxHeadDim && heads % layer.kv_heads == 0,
        "heads that the kernel has lanes for");
  const std::int64_t chunks = (heads / layer.kv_heads + kHeadsPerBlock - 1) / kHeadsPerBlock;
  const dim3 parts(static_cast<unsigned>(call.splits), static_cast<unsigned>(layer.kv_heads * chunks),
                   static_cast<unsigned>(rows));
  const bool cluster = stream.overlaps && call.splits <= kMostBlocksInCluster;
  launch("attention", find_kernel(layer, prepare, cluster), {parts, kAttentionThreads, cluster ? parts.x : 0}, stream,
         call);
  if (cluster) return;
  launch("merge attention", merge, {dim3(static_cast<unsigned>(heads), static_cast<unsigned>(rows)), kMergeThreads},
         stream, call);
}

}  // namespace

std::size_t attention_scratch_bytes(std::int64_t rows, std::int64_t heads, std::int64_t head_dim, std::int64_t splits) {
  return static_cast<std::size_t>(rows * heads * splits * (head_dim + 2)) * sizeof(float);
}

void attention(const KvLayer& layer, MatrixView<const __half> q, const RowPlaces& places, const AttentionRule& rule,
               const AttentionScratch& scratch, MatrixView<__half> out, const Stream& stream) {
  AttentionCall call = {};
  call.layer = layer;
  call.q = q;
  call.places = places;
  call.rule = rule;
  call.splits = static_cast<int>(scratch.splits);
  call.partial = scratch.memory;
  call.out = out;
  run(call, q.rows, false, stream);
}

void attention_with_heads(const HeadWorks& heads, std::int64_t rows, const AttentionRule& rule,
                          const AttentionScratch& scratch, bool earlier_stored, MatrixView<__half> out,
                          const Stream& stream) {
  static_assert(kHeadsPerBlock + 2 <= kAttentionWarps, "a warp for each head, the key and the value");
  AttentionCall call = {};
  call.layer = heads.layer;
  call.places = heads.places;
  call.rule = rule;
  call.splits = static_cast<int>(scratch.splits);
  call.partial = scratch.memory;
  call.out = out;
  call.heads = heads;
  call.earlier_stored = earlier_stored;
  run(call, rows, true, stream);
}

}  // namespace qpn8::cuda
