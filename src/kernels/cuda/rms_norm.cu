#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rms_norm.hpp"

namespace qpn8::cuda {
namespace {

constexpr int kThreads = 512;

/// kWidth FP16 numbers that move together.
template <int kWidth>
struct Piece {
  __half values[kWidth];
};
template <>
struct alignas(16) Piece<8> {
  __half values[8];
};

template <int kWidth>
__device__ Piece<kWidth>* piece_at(__half* row, long i) {
  return reinterpret_cast<Piece<kWidth>*>(row) + i;
}
template <int kWidth>
__device__ const Piece<kWidth>* piece_at(const __half* row, long i) {
  return reinterpret_cast<const Piece<kWidth>*>(row) + i;
}

// A block a row. The first piece of each thread stays in registers: rows of up to 4,096 are read once.
template <int kWidth, bool kAdd>
__global__ void __launch_bounds__(kThreads) normalise(MatrixView<__half> x, MatrixView<const __half> delta,
                                                      const float* weight, float eps, MatrixView<__half> out) {
  wait_for_earlier_kernels();
  const long row = blockIdx.x;
  __half* in = x.data + row * x.stride;
  const long pieces = x.cols / kWidth;
  Piece<kWidth> first = {};
  float squares = 0.0F;
  for (long i = threadIdx.x; i < pieces; i += kThreads) {
    Piece<kWidth> piece = *piece_at<kWidth>(in, i);
    if (kAdd) {
      const Piece<kWidth> added = *piece_at<kWidth>(delta.data + row * delta.stride, i);
      for (int j = 0; j < kWidth; ++j) {
        piece.values[j] = __float2half_rn(__half2float(piece.values[j]) + __half2float(added.values[j]));
      }
      *piece_at<kWidth>(in, i) = piece;
    }
    if (i == threadIdx.x) first = piece;
    for (int j = 0; j < kWidth; ++j) {
      const float value = __half2float(piece.values[j]);
      squares = fmaf(value, value, squares);
    }
  }
  const float scale = rsqrtf(block_sum<kThreads>(squares) / static_cast<float>(x.cols) + eps);
  for (long i = threadIdx.x; i < pieces; i += kThreads) {
    Piece<kWidth> piece = i == threadIdx.x ? first : *piece_at<kWidth>(in, i);
    for (int j = 0; j < kWidth; ++j) {
      piece.values[j] = __float2half_rn(__half2float(piece.values[j]) * scale * weight[i * kWidth + j]);
    }
    *piece_at<kWidth>(out.data + row * out.stride, i) = piece;
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
  launch("rms_norm", kernel, dim3(static_cast<unsigned>(x.rows)), kThreads, 0, stream, in, x, weight, eps, out);
}

void add_rms_norm(MatrixView<__half> residual, MatrixView<const __half> delta, const float* weight, float eps,
                  MatrixView<__half> out, const Stream& stream) {
  const bool eights = in_eights(residual) && in_eights(delta) && in_eights(out);
  const auto kernel = eights ? normalise<8, true> : normalise<1, true>;
  launch("add_rms_norm", kernel, dim3(static_cast<unsigned>(residual.rows)), kThreads, 0, stream, residual, delta,
         weight, eps, out);
}

}  // namespace qpn8::cuda
