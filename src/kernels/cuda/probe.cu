#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/probe.hpp"

namespace qpn8::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 1024;
constexpr int kInFlight = 4;  // reads of a thread that do not wait for each other

__global__ void __launch_bounds__(kThreads) fold(const uint4* data, std::size_t count, int* never) {
  wait_for_earlier_kernels();
  constexpr std::size_t kStride = std::size_t{kBlocks} * kThreads;
  unsigned folded = 0;
  std::size_t i = blockIdx.x * std::size_t{kThreads} + threadIdx.x;
  for (; i + (kInFlight - 1) * kStride < count; i += kInFlight * kStride) {
#pragma unroll
    for (int step = 0; step < kInFlight; ++step) {
      const uint4 v = data[i + step * kStride];
      folded ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  for (; i < count; i += kStride) folded ^= data[i].x;
  if (folded == 0x12345) *never = static_cast<int>(folded);
}

}  // namespace

void read_all(const void* memory, std::size_t bytes, int* never, const Stream& stream) {
  launch("read_all", fold, {dim3(kBlocks), kThreads}, stream, static_cast<const uint4*>(memory), bytes / sizeof(uint4),
         never);
}

}  // namespace qpn8::cuda
