#include "base/check.hpp"
#include "kernels/cuda/heads.hpp"
#include "kernels/cuda/launch.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kAngleThreads = 64;

constexpr int kPerLane = static_cast<int>(kMaxHeadDim) / kWarpSize;  // numbers of a head that a lane takes
constexpr int kPairsPerLane = kPerLane / 2;

/// The weights of a lane's numbers; they do not depend on earlier kernels.
struct LaneNorm {
  float weights[kPerLane] = {};

  __device__ LaneNorm(const float* norm, int head_dim, int lane) {
    for (int j = 0; j < kPerLane; ++j) {
      const int i = lane + j * kWarpSize;
      if (norm != nullptr && i < head_dim) weights[j] = norm[i];
    }
  }
};

/// The angles of a lane's pairs, asked for before they are needed.
struct LaneAngles {
  float cosines[kPairsPerLane] = {};
  float sines[kPairsPerLane] = {};

  __device__ LaneAngles(const float* angles, int pairs, int lane) {
    for (int j = 0; j < kPairsPerLane; ++j) {
      const int i = lane + j * kWarpSize;
      if (i >= pairs) continue;
      cosines[j] = angles[i];
      sines[j] = angles[pairs + i];
    }
  }
};

__device__ void normalise(float* head, int head_dim, const LaneNorm& norm, float eps, int lane) {
  float squares = 0.0F;
  for (int i = lane; i < head_dim; i += kWarpSize) squares = fmaf(head[i], head[i], squares);
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(head_dim) + eps);
  for (int j = 0; j < kPerLane; ++j) {
    const int i = lane + j * kWarpSize;
    if (i < head_dim) head[i] *= scale * norm.weights[j];
  }
  __syncwarp();
}

__device__ void rotate(float* head, const LaneAngles& angles, int pairs, bool interleaved, int lane) {
  for (int j = 0; j < kPairsPerLane; ++j) {
    const int i = lane + j * kWarpSize;
    if (i >= pairs) continue;
    const int low = interleaved ? 2 * i : i;
    const int high = interleaved ? low + 1 : i + pairs;
    const float a = head[low];
    const float b = head[high];
    head[low] = a * angles.cosines[j] - b * angles.sines[j];
    head[high] = b * angles.cosines[j] + a * angles.sines[j];
  }
  __syncwarp();
}

template <class T>
__device__ void store(T* to, const float* head, int head_dim, int lane) {
  for (int i = lane; i < head_dim; i += kWarpSize) store_float(to + i, head[i]);
}

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
  __half* source = work.x.data + row * work.x.stride + index * head_dim;
  for (int i = lane; i < head_dim; i += kWarpSize) head[i] = __half2float(source[i]);
  const int pairs = work.rotated ? static_cast<int>(job.rotation.angles.cols / 2) : 0;
  const LaneAngles angles(job.rotation.angles.data + row * job.rotation.angles.stride, pairs, lane);
  const bool stored = work.target != HeadTarget::in_place;
  const long slot = stored ? job.places.slots[row] : 0;
  const long position = stored ? job.places.positions[row] : 0;
  __syncwarp();
  if (work.norm != nullptr) normalise(head, head_dim, norm, work.eps, lane);
  if (work.rotated) rotate(head, angles, pairs, job.rotation.interleaved, lane);
  if (!stored) {
    store(source, head, head_dim, lane);
    return;
  }
  const KvLayer& layer = job.layer;
  const long place = ((slot * layer.kv_heads + index) * layer.capacity + position) * head_dim;
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
  check(work.head_dim <= kMaxHeadDim, "heads that a warp has lanes for");
  std::int64_t heads = 0;
  for (const HeadWork& one : work.works) {
    check(one.x.cols % work.head_dim == 0, "a matrix of whole heads");
    heads += one.x.cols / work.head_dim;
  }
  const dim3 grid(blocks_for(heads, kWarps), static_cast<unsigned>(rows));
  launch("process_heads", process, grid, kWarps * kWarpSize, 0, stream, work);
}

void rope_angles(const std::int32_t* positions, MatrixView<const float> frequencies, float scale,
                 MatrixView<float> angles, const Stream& stream) {
  check(angles.cols == 2 * frequencies.cols, "a cosine and a sine a frequency");
  launch("rope_angles", compute_angles, dim3(static_cast<unsigned>(angles.rows)), kAngleThreads, 0, stream, positions,
         frequencies, scale, angles);
}

}  // namespace qpn8::cuda
