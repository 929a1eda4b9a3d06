#include "base/check.hpp"
#include "kernels/cuda/heads.hpp"
#include "kernels/cuda/launch.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kAngleThreads = 64;

__device__ void normalise(float* head, int head_dim, const float* weight, float eps, int lane) {
  float squares = 0.0F;
  for (int i = lane; i < head_dim; i += kWarpSize) squares = fmaf(head[i], head[i], squares);
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(head_dim) + eps);
  for (int i = lane; i < head_dim; i += kWarpSize) head[i] *= scale * weight[i];
  __syncwarp();
}

__device__ void rotate(float* head, const Rotation& rotation, long row, int lane) {
  const int pairs = static_cast<int>(rotation.angles.cols / 2);
  const float* cosines = rotation.angles.data + row * rotation.angles.stride;
  for (int i = lane; i < pairs; i += kWarpSize) {
    const int low = rotation.interleaved ? 2 * i : i;
    const int high = rotation.interleaved ? low + 1 : i + pairs;
    const float a = head[low];
    const float b = head[high];
    const float c = cosines[i];
    const float s = cosines[pairs + i];
    head[low] = a * c - b * s;
    head[high] = b * c + a * s;
  }
  __syncwarp();
}

template <class T>
__device__ void store(T* to, const float* head, int head_dim, int lane) {
  for (int i = lane; i < head_dim; i += kWarpSize) store_float(to + i, head[i]);
}

// A warp a head of a row; the head lies in shared memory between the steps.
__global__ void __launch_bounds__(kWarps* kWarpSize) process(const HeadWorks job, long rows) {
  wait_for_earlier_kernels();
  extern __shared__ float heads_of_block[];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int head_dim = static_cast<int>(job.head_dim);
  float* head = heads_of_block + warp * head_dim;
  long index = static_cast<long>(blockIdx.x) * kWarps + warp;
  const long row = blockIdx.y;
  int chosen = 0;
  while (chosen < 3 && index >= job.works[chosen].x.cols / head_dim) {
    index -= job.works[chosen].x.cols / head_dim;
    ++chosen;
  }
  if (chosen == 3) return;
  const HeadWork& work = job.works[chosen];
  __half* source = work.x.data + row * work.x.stride + index * head_dim;
  for (int i = lane; i < head_dim; i += kWarpSize) head[i] = __half2float(source[i]);
  __syncwarp();
  if (work.norm != nullptr) normalise(head, head_dim, work.norm, work.eps, lane);
  if (work.rotated) rotate(head, job.rotation, row, lane);
  if (work.target == HeadTarget::in_place) {
    store(source, head, head_dim, lane);
    return;
  }
  const KvLayer& layer = job.layer;
  const long place =
      ((job.places.slots[row] * layer.kv_heads + index) * layer.capacity + job.places.positions[row]) * head_dim;
  std::byte* memory = work.target == HeadTarget::keys ? layer.keys : layer.values;
  if (layer.dtype == DType::f16) {
    store(reinterpret_cast<__half*>(memory) + place, head, head_dim, lane);
  } else {
    store(reinterpret_cast<float*>(memory) + place, head, head_dim, lane);
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
  std::int64_t heads = 0;
  for (const HeadWork& one : work.works) {
    check(one.x.cols % work.head_dim == 0, "a matrix of whole heads");
    heads += one.x.cols / work.head_dim;
  }
  const dim3 grid(blocks_for(heads, kWarps), static_cast<unsigned>(rows));
  const std::size_t shared = kWarps * static_cast<std::size_t>(work.head_dim) * sizeof(float);
  launch("process_heads", process, grid, kWarps * kWarpSize, shared, stream, work, rows);
}

void rope_angles(const std::int32_t* positions, MatrixView<const float> frequencies, float scale,
                 MatrixView<float> angles, const Stream& stream) {
  check(angles.cols == 2 * frequencies.cols, "a cosine and a sine a frequency");
  launch("rope_angles", compute_angles, dim3(static_cast<unsigned>(angles.rows)), kAngleThreads, 0, stream, positions,
         frequencies, scale, angles);
}

}  // namespace qpn8::cuda
