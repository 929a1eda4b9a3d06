#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/dtype.hpp"
#include "kernels/cuda/packed_layout.hpp"

namespace qpn8::cuda {

/// A matrix of rows in device memory that a product writes: FP16, or FP32 for logits.
struct ProductOutput {
  void* data = nullptr;
  DType dtype = DType::f16;
  std::int64_t n = 0;       ///< columns; at most the weight's channels, which may be padded
  std::int64_t stride = 0;  ///< elements between rows
};

/// y = x W^T + bias for 1 to kMaxPackedRows rows, asynchronously on `stream`.
///
/// x [rows, k] FP16 with x_stride elements between rows, rows 16-byte aligned; bias n floats or null, added in FP32.
/// FP32 accumulation in a fixed order that does not depend on rows: row i of an m-row call equals the 1-row call bit
/// for bit. x and y do not overlap. Error::missing_capability if the launch fails.
void qpn8_linear(const PackedLayout& weight, const __half* x, std::int64_t x_stride, int rows, const float* bias,
                 const ProductOutput& y, cudaStream_t stream);

}  // namespace qpn8::cuda
