#include "kernels/cuda/argmax.hpp"
#include "kernels/cuda/launch.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 64;  // of a row: one block alone cannot read a vocabulary at the memory's speed

using Key = unsigned long long;
constexpr Key kNotFinite = ~Key{0};

/// Keys order as (value, lower index first); a value that is not finite is above all.
__device__ Key key_of(float value, long index) {
  if (!isfinite(value)) return kNotFinite;
  const unsigned bits = __float_as_uint(value + 0.0F);  // -0 and 0 are equal
  const unsigned ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
  return static_cast<Key>(ordered) << 32 | (0xfffffffeU - static_cast<unsigned>(index));
}

__device__ Key block_max(Key key) {
  __shared__ Key keys[kThreads];
  keys[threadIdx.x] = key;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) keys[threadIdx.x] = max(keys[threadIdx.x], keys[threadIdx.x + half]);
  }
  return keys[0];  // of thread 0, which wrote it
}

__global__ void __launch_bounds__(kThreads) find_in_parts(MatrixView<const float> x, Key* found) {
  wait_for_earlier_kernels();
  const float* row = x.data + blockIdx.y * x.stride;
  Key best = 0;
  for (long i = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x; i < x.cols; i += kBlocks * kThreads) {
    best = max(best, key_of(row[i], i));
  }
  best = block_max(best);
  if (threadIdx.x == 0) found[blockIdx.y * kBlocks + blockIdx.x] = best;
}

__global__ void __launch_bounds__(kThreads) merge_parts(const Key* found, std::int32_t* out) {
  wait_for_earlier_kernels();
  const Key best = block_max(threadIdx.x < kBlocks ? found[blockIdx.x * kBlocks + threadIdx.x] : 0);
  if (threadIdx.x > 0) return;
  out[blockIdx.x] = best == kNotFinite ? -1 : static_cast<std::int32_t>(0xfffffffeU - static_cast<unsigned>(best));
}

}  // namespace

std::size_t argmax_scratch_bytes(std::int64_t rows) { return static_cast<std::size_t>(rows) * kBlocks * sizeof(Key); }

void argmax(MatrixView<const float> x, void* scratch, std::int32_t* out, const Stream& stream) {
  const auto rows = static_cast<unsigned>(x.rows);
  auto* found = static_cast<Key*>(scratch);
  launch("argmax", find_in_parts, {dim3(kBlocks, rows), kThreads}, stream, x, found);
  launch("merge argmax", merge_parts, {dim3(rows), kThreads}, stream, found, out);
}

}  // namespace qpn8::cuda
