#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "qpn8/e4m3.hpp"
#include "qpn8/half.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/pack.hpp"
#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::test {

/// Finite codes, each as likely as the next: subnormals and zeros of both signs included.
inline Matrix<std::uint8_t> uniform_codes(std::int64_t rows, std::int64_t cols, std::mt19937& random) {
  std::uniform_int_distribution<int> byte(0, 253);
  Matrix<std::uint8_t> codes(rows, cols);
  for (std::uint8_t& code : codes.values()) {
    const int index = byte(random);
    code = static_cast<std::uint8_t>(index < 127 ? index : index + 1);
  }
  return codes;
}

inline std::vector<float> uniform_scales(std::int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(0.001F, 0.01F);
  std::vector<float> scales(static_cast<std::size_t>(count));
  for (float& scale : scales) scale = uniform(random);
  return scales;
}

inline PackedWeight random_packed(std::int64_t n, std::int64_t k, ScaleKind kind, std::mt19937& random,
                                  ThreadTeam& team) {
  const Matrix<std::uint8_t> codes = uniform_codes(n, k, random);
  if (kind == ScaleKind::channel) return pack_codes(codes.view(), uniform_scales(n, random), team);
  const std::int64_t block_rows = (n + kScaleBlock - 1) / kScaleBlock;
  const std::int64_t block_cols = (k + kScaleBlock - 1) / kScaleBlock;
  const std::vector<float> scales = uniform_scales(block_rows * block_cols, random);
  return pack_blockwise(codes.view(), MatrixView<const float>(scales.data(), block_rows, block_cols), team);
}

inline std::vector<std::uint32_t> bits(MatrixView<const float> matrix) {
  std::vector<std::uint32_t> result;
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    for (const float value : matrix.row(i)) result.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return result;
}

}  // namespace qpn8::test
