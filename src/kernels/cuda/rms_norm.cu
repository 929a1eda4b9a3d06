#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rms_norm.hpp"

namespace qpn8::cuda {
namespace {

constexpr int kThreads = 512;

/// kWidth numbers that move together.
template <class T, int kWidth>
struct alignas(kWidth == 1 ? alignof(T) : 16) Piece {
  T values[kWidth];
};

/// Piece i of a row.
template <int kWidth, class T>
__device__ Piece<T, kWidth>& piece_at(T* row, long i) {
  return *(reinterpret_cast<Piece<T, kWidth>*>(row) + i);
}
template <int kWidth, class T>
__device__ const Piece<T, kWidth>& piece_at(const T* row, long i) {
  return *(reinterpret_cast<const Piece<T, kWidth>*>(row) + i);
}

// A block a row. The first piece of each thread stays in registers, so that rows of up to 4,096 are read once, and its
// weights are asked for before the kernels before have ended.
template <int kWidth, bool kAdd>
__global__ void __launch_bounds__(kThreads) normalise(MatrixView<__half> x, MatrixView<const __half> delta,
                                                      const float* weight, float eps, MatrixView<__half> out) {
  const long row = blockIdx.x;
  __half* in = x.data + row * x.stride;
  const long pieces = x.cols / kWidth;
  Piece<__half, kWidth> first = {};
  Piece<float, kWidth> first_weights = {};
  allow_next_kernel();
  if (threadIdx.x < pieces) first_weights = piece_at<kWidth>(weight, threadIdx.x);
  wait_for_earlier_kernels();
  float squares = 0.0F;
  for (long i = threadIdx.x; i < pieces; i += kThreads) {
    Piece<__half, kWidth> piece = piece_at<kWidth>(in, i);
    if (kAdd) {
      const Piece<__half, kWidth> added = piece_at<kWidth>(delta.data + row * delta.stride, i);
      for (int j = 0; j < kWidth; ++j) {
        piece.values[j] = __float2half_rn(__half2float(piece.values[j]) + __half2float(added.values[j]));
      }
      piece_at<kWidth>(in, i) = piece;
    }
    if (i == threadIdx.x) first = piece;
    for (int j = 0; j < kWidth; ++j) {
      const float value = __half2float(piece.values[j]);
      squares = fmaf(value, value, squares);
    }
  }
  const float scale = rsqrtf(block_sum<kThreads>(squares) / static_cast<float>(x.cols) + eps);
  for (long i = threadIdx.x; i < pieces; i += kThreads) {
    const bool kept = i == threadIdx.x;
    Piece<__half, kWidth> piece = kept ? first : piece_at<kWidth>(in, i);
    const Piece<float, kWidth> weights = kept ? first_weights : piece_at<kWidth>(weight, i);
    for (int j = 0; j < kWidth; ++j) {
      piece.values[j] = __float2half_rn(__half2float(piece.values[j]) * scale * weights.values[j]);
    }
    piece_at<kWidth>(out.data + row * out.stride, i) = piece;
  }
}

template <class T>
bool in_eights(MatrixView<T> matrix) {
  return matrix.cols % 8 == 0 && matrix.stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0;
}

}  // namespace

void rms_norm(MatrixView<const __half> x, const float* weight, float eps, MatrixView<__half> out,
              const Stream& stream) {
  // Without kAdd the kernel only reads x.
  const MatrixView<__half> in(const_cast<__half*>(x.data), x.rows, x.cols, x.stride);
  const auto kernel = in_eights(x) && in_eights(out) ? normalise<8, false> : normalise<1, false>;
  launch("rms_norm", kernel, {dim3(static_cast<unsigned>(x.rows)), kThreads}, stream, in, x, weight, eps, out);
}

void add_rms_norm(MatrixView<__half> residual, MatrixView<const __half> delta, const float* weight, float eps,
                  MatrixView<__half> out, const Stream& stream) {
  const bool eights = in_eights(residual) && in_eights(delta) && in_eights(out);
  const auto kernel = eights ? normalise<8, true> : normalise<1, true>;
  launch("add_rms_norm", kernel, {dim3(static_cast<unsigned>(residual.rows)), kThreads}, stream, residual, delta,
         weight, eps, out);
}

}  // namespace qpn8::cuda
