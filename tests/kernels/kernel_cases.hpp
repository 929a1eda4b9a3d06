#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/half.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/pack.hpp"

namespace qpn8::test {

/// Runs a test once for every instruction set of the machine and restores the best one after it.
class OnEveryIsa : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override { cpu::use_isa(GetParam()); }
  void TearDown() override { cpu::use_isa(std::nullopt); }
};

inline std::string isa_name(const testing::TestParamInfo<cpu::Isa>& info) {
  return std::string(cpu::to_string(info.param));
}

/// FP32 numbers of a unit Gaussian.
inline Matrix<float> gaussian(std::int64_t rows, std::int64_t cols, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Matrix<float> matrix(rows, cols);
  for (float& value : matrix.values()) value = normal(random);
  return matrix;
}

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

/// |a - b| / |b| over all elements; 0 if both vanish.
inline double relative_l2(MatrixView<const float> a, MatrixView<const double> b) {
  double difference = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) {
      const double expected = b.data[i * b.stride + j];
      const double distance = a.data[i * a.stride + j] - expected;
      difference += distance * distance;
      norm += expected * expected;
    }
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

inline std::vector<std::uint32_t> bits(MatrixView<const float> matrix) {
  std::vector<std::uint32_t> result;
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    for (const float value : matrix.row(i)) result.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return result;
}

}  // namespace qpn8::test
