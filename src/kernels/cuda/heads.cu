#include "base/check.hpp"
#include "kernels/cuda/head_work.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kAngleThreads = 64;

// A warp a head of a row; the head lies in shared memory between the steps.
__global__ void __launch_bounds__(kWarps* kWarpSize) process(const HeadWorks job) {
  __shared__ float heads_of_block[kWarps][kMaxHeadDim];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int head_dim = static_cast<int>(job.head_dim);
  float* head = heads_of_block[warp];
  long index = static_cast<long>(blockIdx.x) * kWarps + warp;
  const long row = blockIdx.y;
  int chosen = 0;
  while (chosen < 3 && index >= job.works[chosen].x.cols / head_dim) {
    index -= job.works[chosen].x.cols / head_dim;
    ++chosen;
  }
  const HeadWork work = chosen < 3 ? job.works[chosen] : HeadWork();
  allow_next_kernel();
  const LaneNorm norm(work.norm, head_dim, lane);
  wait_for_earlier_kernels();
  if (chosen == 3) return;
  load_head(work, job.rotation, row, index, norm, head_dim, lane, head);
  if (work.target == HeadTarget::in_place) {
    store_head(work.x.data + row * work.x.stride + index * head_dim, head, head_dim, lane);
    return;
  }
  const KvLayer& layer = job.layer;
  const long place = kv_offset(layer, job.places.slots[row], index, job.places.positions[row]);
  std::byte* memory = work.target == HeadTarget::keys ? layer.keys : layer.values;
  if (layer.dtype == DType::f16) {
    store_head(reinterpret_cast<__half*>(memory) + place, head, head_dim, lane);
  } else {
    store_head(reinterpret_cast<float*>(memory) + place, head, head_dim, lane);
  }
}

__global__ void __launch_bounds__(kAngleThreads)
    compute_angles(const std::int32_t* positions, MatrixView<const float> frequencies, float scale,
                   MatrixView<float> angles) {
  wait_for_earlier_kernels();
  const long pairs = frequencies.cols;
  float* row = angles.data + blockIdx.x * angles.stride;
  const auto position = static_cast<float>(positions[blockIdx.x]);
  for (long i = threadIdx.x; i < pairs; i += kAngleThreads) {
    const float angle = position * frequencies.data[i];
    row[i] = cosf(angle) * scale;
    row[pairs + i] = sinf(angle) * scale;
  }
}

}  // namespace

void process_heads(const HeadWorks& work, std::int64_t rows, const Stream& stream) {
  check(work.head_dim <= kMaxHeadDim, "heads that a warp has lanes for");
  std::int64_t heads = 0;
  for (const HeadWork& one : work.works) {
    check(one.x.cols % work.head_dim == 0, "a matrix of whole heads");
    heads += one.x.cols / work.head_dim;
  }
  const dim3 grid(blocks_for(heads, kWarps), static_cast<unsigned>(rows));
  launch("process_heads", process, {grid, kWarps * kWarpSize}, stream, work);
}

void rope_angles(const std::int32_t* positions, MatrixView<const float> frequencies, float scale,
                 MatrixView<float> angles, const Stream& stream) {
  check(angles.cols == 2 * frequencies.cols, "a cosine and a sine a frequency");
  launch("rope_angles", compute_angles, {dim3(static_cast<unsigned>(angles.rows)), kAngleThreads}, stream, positions,
         frequencies, scale, angles);
}

}  // namespace qpn8::cuda
