#pragma once

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include "kernels/cuda/dense_linear.hpp"
#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

/// cuBLAS on one stream, for products of many rows; FP16 operands, FP32 accumulation. It keeps a workspace of its own,
/// so that its choice of algorithm, and with it every bit, is the same in every process.
class Gemm {
 public:
  explicit Gemm(const Stream& stream);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  /// y = x W^T, or y += x W^T if `accumulate`; y FP16 or FP32 of weight.n columns.
  void multiply(const DenseWeight& weight, MatrixView<const __half> x, bool accumulate, const ProductOutput& y) const;

 private:
  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
};

}  // namespace qpn8::cuda
