#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/stream.hpp"

// What every kernel of this folder shares: how it is launched, and how it waits for the kernel before it.

namespace qpn8::cuda {

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

/// Lets the next kernel be launched; it then waits as this one does.
__device__ inline void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Called by every kernel that launch() starts, before it touches anything but weights: returns when all earlier
/// kernels have ended and their results can be read. Since each kernel waits here, the one before has waited too.
__device__ inline void wait_for_earlier_kernels() {
  allow_next_kernel();
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

struct LaunchShape {
  dim3 grid;
  unsigned threads = 0;
  /// Neighbouring blocks in x that run at the same time and can wait for each other (compute capability 9.0 on); 0:
  /// each block for itself.
  unsigned cluster = 0;
  std::size_t shared_bytes = 0;  ///< beside what the kernel declares
};

/// Launches a kernel; an error names it. An empty grid is no work.
template <class... Params, class... Args>
void launch(const char* name, void (*kernel)(Params...), const LaunchShape& shape, const Stream& stream,
            Args&&... args) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  allow_shared_memory(reinterpret_cast<const void*>(kernel), shape.shared_bytes, name);
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (stream.overlaps) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster > 0) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {shape.cluster, 1, 1};
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream.handle;
  config.attrs = attributes;
  config.numAttrs = count;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), name);
}

/// The sum over a warp, in every lane; a fixed tree.
__device__ inline float warp_sum(float value) {
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

/// The sum over a block of kThreads, in every thread; warps are added in order.
template <int kThreads>
__device__ float block_sum(float value) {
  constexpr int kWarps = kThreads / kWarpSize;
  __shared__ float sums[kWarps];
  value = warp_sum(value);
  __syncthreads();  // an earlier call's sums have been read
  if (threadIdx.x % kWarpSize == 0) sums[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  float total = 0.0F;
  for (int warp = 0; warp < kWarps; ++warp) total += sums[warp];
  return total;
}

__device__ inline float load_float(const float* at) { return *at; }
__device__ inline float load_float(const __half* at) { return __half2float(*at); }
__device__ inline void store_float(float* at, float value) { *at = value; }
__device__ inline void store_float(__half* at, float value) { *at = __float2half_rn(value); }

inline unsigned blocks_for(std::int64_t work, std::int64_t each) {
  return static_cast<unsigned>((work + each - 1) / each);
}

}  // namespace qpn8::cuda
