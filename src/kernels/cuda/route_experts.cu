#include "base/check.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/route_experts.hpp"

namespace qpn8::cuda {
namespace {

/// Whether logit a of id i comes before logit b of id j.
__device__ bool before(float a, int i, float b, int j) {
  if (isnan(a) != isnan(b)) return isnan(a);
  if (a > b) return true;
  if (a < b) return false;
  return i < j;
}

// A warp a row. Chosen logits are marked by an id bit in shared memory, so that a row of NaN still gives distinct ids.
__global__ void __launch_bounds__(kWarpSize)
    choose(MatrixView<const float> logits, bool normalise, MatrixView<std::int32_t> ids, MatrixView<float> weights) {
  wait_for_earlier_kernels();
  __shared__ float row[kMaxExperts];
  __shared__ bool taken[kMaxExperts];
  const int lane = threadIdx.x;
  const int experts = static_cast<int>(logits.cols);
  float largest = -INFINITY;
  for (int i = lane; i < experts; i += kWarpSize) {
    row[i] = logits.data[blockIdx.x * logits.stride + i];
    taken[i] = false;
    largest = fmaxf(largest, row[i]);
  }
  largest = warp_max(largest);
  float total = 0.0F;
  for (int i = lane; i < experts; i += kWarpSize) total += expf(row[i] - largest);
  total = warp_sum(total);
  __syncwarp();
  float chosen_total = 0.0F;
  float* to = weights.data + blockIdx.x * weights.stride;
  for (int j = 0; j < ids.cols; ++j) {
    int best = -1;
    for (int i = lane; i < experts; i += kWarpSize) {
      if (!taken[i] && (best < 0 || before(row[i], i, row[best], best))) best = i;
    }
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
      const int other = __shfl_xor_sync(kAllLanes, best, distance);
      if (other >= 0 && (best < 0 || before(row[other], other, row[best], best))) best = other;
    }
    const float probability = expf(row[best] - largest) / total;
    chosen_total += probability;
    if (lane == 0) {
      taken[best] = true;
      ids.data[blockIdx.x * ids.stride + j] = best;
      to[j] = probability;
    }
    __syncwarp();
  }
  if (!normalise) return;
  for (int j = lane; j < ids.cols; j += kWarpSize) to[j] /= chosen_total;
}

}  // namespace

void route_experts(MatrixView<const float> logits, bool normalise, MatrixView<std::int32_t> ids,
                   MatrixView<float> weights, const Stream& stream) {
  check(logits.cols <= kMaxExperts && ids.cols <= logits.cols, "as many experts as the kernel has room for");
  launch("route_experts", choose, {dim3(static_cast<unsigned>(logits.rows)), kWarpSize}, stream, logits, normalise, ids,
         weights);
}

}  // namespace qpn8::cuda
