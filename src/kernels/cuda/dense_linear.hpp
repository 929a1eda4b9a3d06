#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/qpn8_linear.hpp"
#include "kernels/cuda/stream.hpp"

namespace qpn8::cuda {

/// An FP16 weight [n, k] in device memory, row-major without gaps. Owns nothing.
struct DenseWeight {
  const __half* data = nullptr;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// y = x W^T + bias for 1 to kMaxPackedRows rows; operands as in qpn8_linear, without alignment: any k and n; k and
/// x.stride that are multiples of 8 are read 16 bytes at a time. A norm is for weights that dense_can_normalise(), and
/// ProductEnd::gate for an n that is a multiple of 16, without bias. FP32 accumulation in a fixed order that does not
/// depend on rows: row i of an m-row call equals the 1-row call bit for bit.
void dense_linear(const DenseWeight& weight, const ProductInput& x, const float* bias, const ProductOutput& y,
                  const Stream& stream);

/// Whether normalised rows of x fit the shared memory of a block.
bool dense_can_normalise(const DenseWeight& weight, const DeviceLimits& device);

}  // namespace qpn8::cuda
