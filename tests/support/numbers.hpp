#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "qpn8/matrix.hpp"

namespace qpn8::test {

/// Gaussian numbers, the next ones of the generator.
inline Matrix<float> gaussian(std::int64_t rows, std::int64_t cols, std::mt19937& generator, float deviation = 1.0F) {
  std::normal_distribution<float> normal(0.0F, deviation);
  Matrix<float> matrix(rows, cols);
  for (float& value : matrix.values()) value = normal(generator);
  return matrix;
}

/// The same for the same seed.
inline Matrix<float> gaussian(std::int64_t rows, std::int64_t cols, unsigned seed, float deviation = 1.0F) {
  std::mt19937 generator(seed);
  return gaussian(rows, cols, generator, deviation);
}

/// The same values in a matrix whose rows lie further apart; what lies between them is NaN, so that a kernel that
/// reads it shows.
class Strided {
 public:
  explicit Strided(const Matrix<float>& matrix, std::int64_t gap = 3)
      : rows_(matrix.rows()), cols_(matrix.cols()), memory_(matrix.rows(), matrix.cols() + gap) {
    for (float& value : memory_.values()) value = std::nanf("");
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < cols_; ++j) memory_(i, j) = matrix(i, j);
    }
  }

  MatrixView<float> view() { return {memory_.values().data(), rows_, cols_, memory_.cols()}; }

 private:
  std::int64_t rows_;
  std::int64_t cols_;
  Matrix<float> memory_;
};

template <class T>
bool same_bits(MatrixView<const T> a, MatrixView<const T> b) {
  if (a.rows != b.rows || a.cols != b.cols) return false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    if (a.cols > 0 && std::memcmp(a.row(i).data(), b.row(i).data(), a.row(i).size_bytes()) != 0) return false;
  }
  return true;
}

/// ||actual - expected|| / ||expected|| over all rows; 0 for two empty matrices.
template <class Actual, class Expected>
double relative_l2(MatrixView<Actual> actual, MatrixView<Expected> expected) {
  double error = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < expected.rows; ++i) {
    for (std::size_t j = 0; j < expected.row(i).size(); ++j) {
      const double difference = static_cast<double>(actual.row(i)[j]) - static_cast<double>(expected.row(i)[j]);
      error += difference * difference;
      norm += static_cast<double>(expected.row(i)[j]) * static_cast<double>(expected.row(i)[j]);
    }
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

}  // namespace qpn8::test
