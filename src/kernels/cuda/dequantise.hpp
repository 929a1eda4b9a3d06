#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/packed_layout.hpp"
#include "kernels/cuda/qpn8_linear.hpp"
#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

/// out[i] = the channel that the weight stores as its (first + i)-th, [channels, k] FP16; both counts are multiples
/// of 16.
///
/// Channel scales are left out, so that the codes are exact; scale_columns() applies them to the product in FP32. Block
/// scales differ within a sum and are multiplied in, rounded to FP16.
void dequantise(const PackedLayout& weight, std::int64_t first, MatrixView<__half> out, const Stream& stream);

/// Which channels, as a weight stores them, columns of sums are.
struct StoredColumns {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t paired_half = 0;  ///< as in PackedLayout
};

/// y[t][c] = sums[t][i] * scales[j] + bias[c] for the j-th stored channel, j = columns.first + i, which is channel c;
/// scales and bias may be null.
void scale_columns(MatrixView<const float> sums, const StoredColumns& columns, const float* scales, const float* bias,
                   const ProductOutput& y, const Stream& stream);

}  // namespace qpn8::cuda
