#include "block_fp8/quantise_block.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/divide_up.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/pack.hpp"
#include "quant/e2m1.hpp"

namespace qpn8 {
namespace {

constexpr float kE2M1Max = 6.0F;

/// The least power of two that is at least `value`, as E8M0; 1 for 0.
std::uint8_t e8m0_above(float value) {
  if (value == 0.0F) return 127;
  return static_cast<std::uint8_t>(std::clamp(std::ceil(std::log2(value)), -127.0F, 127.0F) + 127.0F);
}

/// A rectangle's largest magnitude.
float largest(MatrixView<const float> weight) {
  float amax = 0.0F;
  for (std::int64_t row = 0; row < weight.rows; ++row) {
    for (const float value : weight.row(row)) amax = std::max(amax, std::abs(value));
  }
  return amax;
}

std::uint8_t nearest_e2m1(float value) {
  std::uint8_t best = 0;
  for (std::uint8_t code = 0; code < 16; ++code) {
    if (std::abs(decode_e2m1(code) - value) < std::abs(decode_e2m1(best) - value)) best = code;
  }
  return best;
}

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

}  // namespace

Quantised quantise_fp8(MatrixView<const float> weight, DType scale_type) {
  Quantised result;
  result.scale_rows = divide_up(weight.rows, kScaleBlock);
  result.scale_cols = divide_up(weight.cols, kScaleBlock);
  result.codes.resize(static_cast<std::size_t>(weight.rows * weight.cols));
  for (std::int64_t row = 0; row < weight.rows; row += kScaleBlock) {
    for (std::int64_t col = 0; col < weight.cols; col += kScaleBlock) {
      const MatrixView<const float> block = weight.row_range(row, std::min(kScaleBlock, weight.rows - row))
                                                .col_range(col, std::min(kScaleBlock, weight.cols - col));
      const float exact = largest(block) / kE4M3Max;
      float scale = exact == 0.0F ? 1.0F : exact;
      if (scale_type == DType::f8_e8m0) {
        const std::uint8_t code = e8m0_above(exact);
        scale = decode_e8m0(code);
        append(result.scales, code);
      } else {
        append(result.scales, scale);
      }
      for (std::int64_t i = 0; i < block.rows; ++i) {
        std::byte* codes = result.codes.data() + (row + i) * weight.cols + col;
        for (std::size_t j = 0; j < block.row(i).size(); ++j)
          codes[j] = std::byte{encode_e4m3(block.row(i)[j] / scale)};
      }
    }
  }
  return result;
}

Quantised quantise_fp4(MatrixView<const float> weight) {
  Quantised result;
  result.scale_rows = weight.rows;
  result.scale_cols = weight.cols / kFp4Group;
  for (std::int64_t row = 0; row < weight.rows; ++row) {
    for (std::int64_t col = 0; col < weight.cols; col += kFp4Group) {
      const MatrixView<const float> group = weight.row_range(row, 1).col_range(col, kFp4Group);
      const std::uint8_t code = e8m0_above(largest(group) / kE2M1Max);
      const float scale = decode_e8m0(code);
      append(result.scales, code);
      for (std::size_t j = 0; j < group.row(0).size(); j += 2) {
        const unsigned even = nearest_e2m1(group.row(0)[j] / scale);
        const unsigned odd = nearest_e2m1(group.row(0)[j + 1] / scale);
        append(result.codes, static_cast<std::uint8_t>(even | odd << 4U));
      }
    }
  }
  return result;
}

std::vector<float> dequantise_fp8(MatrixView<const std::uint8_t> codes, MatrixView<const float> scales) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < codes.rows; ++row) {
    for (std::int64_t col = 0; col < codes.cols; ++col) {
      values.push_back(decode_e4m3(codes.row(row)[static_cast<std::size_t>(col)]) *
                       scales.row(row / kScaleBlock)[static_cast<std::size_t>(col / kScaleBlock)]);
    }
  }
  return values;
}

std::vector<float> dequantise_fp4(MatrixView<const std::uint8_t> codes, MatrixView<const float> scales) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < codes.rows; ++row) {
    for (std::int64_t col = 0; col < 2 * codes.cols; ++col) {
      values.push_back(decode_e2m1(e2m1_at(codes.row(row).data(), col)) *
                       scales.row(row)[static_cast<std::size_t>(col / kFp4Group)]);
    }
  }
  return values;
}

}  // namespace qpn8
