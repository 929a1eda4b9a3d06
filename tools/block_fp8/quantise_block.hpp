#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8 {

/// A matrix as codes and scales, in the bytes of a checkpoint.
struct Quantised {
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::int64_t scale_rows = 0;
  std::int64_t scale_cols = 0;
};

/// E4M3 by blocks of 128 x 128: amax / 448 in FP32, or the power of two at or above it as E8M0; 1 for a block of zeros.
Quantised quantise_fp8(MatrixView<const float> weight, DType scale_type);

/// E2M1 by rows of 32, two codes a byte, E8M0 scales; the columns are a multiple of 32.
Quantised quantise_fp4(MatrixView<const float> weight);

/// The inverses: code times scale.
std::vector<float> dequantise_fp8(MatrixView<const std::uint8_t> codes, MatrixView<const float> scales);
std::vector<float> dequantise_fp4(MatrixView<const std::uint8_t> codes, MatrixView<const float> scales);

}  // namespace qpn8
