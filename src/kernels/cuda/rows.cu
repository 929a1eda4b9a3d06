#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rows.hpp"
#include "kernels/cuda/silu.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kThreads = 256;

/// Which columns of a row a thread has in a grid of (columns / kThreads, rows).
__device__ long column_of_thread() { return static_cast<long>(blockIdx.x) * kThreads + threadIdx.x; }

dim3 grid_of(std::int64_t rows, std::int64_t cols) { return {blocks_for(cols, kThreads), static_cast<unsigned>(rows)}; }

__global__ void __launch_bounds__(kThreads)
    copy_rows(MatrixView<const __half> in, const std::int32_t* rows, MatrixView<__half> out) {
  wait_for_earlier_kernels();
  const long i = column_of_thread();
  const long row = blockIdx.y;
  if (i < out.cols) out.data[row * out.stride + i] = in.data[rows[row] * in.stride + i];
}

__global__ void __launch_bounds__(kThreads) gate(MatrixView<const __half> gate_up, MatrixView<__half> out) {
  wait_for_earlier_kernels();
  const long i = column_of_thread();
  const long row = blockIdx.y;
  if (i >= out.cols) return;
  const float z = silu(__half2float(gate_up.data[row * gate_up.stride + i]));
  const float up = __half2float(gate_up.data[row * gate_up.stride + out.cols + i]);
  out.data[row * out.stride + i] = __float2half_rn(z * up);
}

template <class T>
__global__ void __launch_bounds__(kThreads) repeat_row(const float* values, MatrixView<T> y) {
  wait_for_earlier_kernels();
  const long i = column_of_thread();
  if (i < y.cols) store_float(y.data + blockIdx.y * y.stride + i, values[i]);
}

template <class T>
__global__ void __launch_bounds__(kThreads) first_non_finite(MatrixView<const T> x, std::int32_t* out) {
  wait_for_earlier_kernels();
  __shared__ int found[kThreads];
  const T* row = x.data + blockIdx.x * x.stride;
  int first = INT_MAX;
  for (long i = threadIdx.x; i < x.cols && first == INT_MAX; i += kThreads) {
    if (!isfinite(load_float(row + i))) first = static_cast<int>(i);
  }
  found[threadIdx.x] = first;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int i = 1; i < kThreads; ++i) first = min(first, found[i]);
  out[blockIdx.x] = first == INT_MAX ? -1 : first;
}

template <class T>
void fill(const float* bias, MatrixView<T> y, const Stream& stream) {
  launch("fill_rows", repeat_row<T>, {grid_of(y.rows, y.cols), kThreads}, stream, bias, y);
}

template <class T>
void find(MatrixView<const T> x, std::int32_t* out, const Stream& stream) {
  launch("find_non_finite", first_non_finite<T>, {dim3(static_cast<unsigned>(x.rows)), kThreads}, stream, x, out);
}

}  // namespace

void gather_rows(MatrixView<const __half> in, const std::int32_t* rows, MatrixView<__half> out, const Stream& stream) {
  launch("gather_rows", copy_rows, {grid_of(out.rows, out.cols), kThreads}, stream, in, rows, out);
}

void swiglu(MatrixView<const __half> gate_up, MatrixView<__half> out, const Stream& stream) {
  launch("swiglu", gate, {grid_of(out.rows, out.cols), kThreads}, stream, gate_up, out);
}

void fill_rows(const float* bias, MatrixView<__half> y, const Stream& stream) { fill(bias, y, stream); }
void fill_rows(const float* bias, MatrixView<float> y, const Stream& stream) { fill(bias, y, stream); }

void find_non_finite(MatrixView<const __half> x, std::int32_t* out, const Stream& stream) { find(x, out, stream); }
void find_non_finite(MatrixView<const float> x, std::int32_t* out, const Stream& stream) { find(x, out, stream); }

}  // namespace qpn8::cuda
