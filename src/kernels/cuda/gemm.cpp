#include "kernels/cuda/gemm.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "base/check.hpp"
#include "kernels/cuda/check.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // what cuBLAS recommends for compute capability 9.0

void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(Error::missing_capability,
              fmt::format("{} (gemm.cpp): {}; --device cpu does without cuBLAS", call, cublasGetStatusString(status)));
}

}  // namespace

Gemm::Gemm(const Stream& stream) {
  check_cublas(cublasCreate(&handle_), "cublasCreate");
  try {
    check_cublas(cublasSetStream(handle_, stream.handle), "cublasSetStream");
    check_cuda(cudaMalloc(&workspace_, kWorkspaceBytes), "cudaMalloc");
    check_cublas(cublasSetWorkspace(handle_, workspace_, kWorkspaceBytes), "cublasSetWorkspace");
  } catch (...) {
    cudaFree(workspace_);
    cublasDestroy(handle_);
    throw;
  }
}

Gemm::~Gemm() {
  cublasDestroy(handle_);
  cudaFree(workspace_);
}

void Gemm::multiply(const DenseWeight& weight, MatrixView<const __half> x, bool accumulate,
                    const ProductOutput& y) const {
  check(x.cols == weight.k && y.n == weight.n, "operands of a product fit");
  if (x.rows == 0 || y.n == 0) return;
  const float one = 1.0F;
  const float beta = accumulate ? 1.0F : 0.0F;
  const cudaDataType_t type = y.dtype == DType::f32 ? CUDA_R_32F : CUDA_R_16F;
  // cuBLAS counts columns first: its y is ours transposed.
  check_cublas(cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(weight.n), static_cast<int>(x.rows),
                            static_cast<int>(weight.k), &one, weight.data, CUDA_R_16F, static_cast<int>(weight.k),
                            x.data, CUDA_R_16F, static_cast<int>(x.stride), &beta, y.data, type,
                            static_cast<int>(y.stride), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
               "cublasGemmEx");
}

}  // namespace qpn8::cuda
