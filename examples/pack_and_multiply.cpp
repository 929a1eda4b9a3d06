// libqpn8 without the engine: packs a random FP16 matrix to 8 bits, multiplies a few rows by it and prints how far the
// result is from the FP32 product of the original weights.

#include <cmath>
#include <iostream>
#include <random>

#include "qpn8/error.hpp"
#include "qpn8/half.hpp"
#include "qpn8/linear.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/pack.hpp"
#include "qpn8/thread_team.hpp"

namespace {

constexpr std::int64_t kOutputs = 1024;
constexpr std::int64_t kInputs = 2048;
constexpr std::int64_t kRows = 4;

/// |y - x W^T| / |x W^T| with the product in FP32.
double relative_error(qpn8::MatrixView<const float> y, qpn8::MatrixView<const float> x,
                      const qpn8::Matrix<qpn8::Half>& weight) {
  double difference = 0;
  double norm = 0;
  for (std::int64_t row = 0; row < y.rows; ++row) {
    for (std::int64_t n = 0; n < y.cols; ++n) {
      float expected = 0;
      for (std::int64_t k = 0; k < x.cols; ++k) expected += x.data[row * x.stride + k] * qpn8::to_float(weight(n, k));
      difference += std::pow(y.data[row * y.stride + n] - expected, 2);
      norm += std::pow(expected, 2);
    }
  }
  return std::sqrt(difference / norm);
}

int run() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  qpn8::Matrix<qpn8::Half> weight(kOutputs, kInputs);
  for (qpn8::Half& value : weight.values()) value = qpn8::to_half(0.02F * normal(random));
  qpn8::Matrix<float> x(kRows, kInputs);
  for (float& value : x.values()) value = normal(random);

  qpn8::ThreadTeam team(2);
  const qpn8::PackedWeight packed = qpn8::pack_channelwise(weight.view(), team);
  std::cout << "packed [" << packed.n << ", " << packed.k << "]: " << packed.bytes() << " bytes instead of "
            << weight.values().size_bytes() << '\n';

  qpn8::Workspace workspace;
  qpn8::Matrix<float> y(kRows, kOutputs);
  qpn8::multiply(packed, qpn8::Schedule{}, x.view(), y.view(), workspace, team);
  const double error = relative_error(y.view(), x.view(), weight);
  std::cout << "relative error against the FP32 product: " << error << '\n';
  // E4M3 keeps 4 significant bits: some 2.6 % for Gaussian weights.
  return error < 0.04 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const qpn8::Error& error) {
    std::cerr << error.what() << '\n';
    return error.exit_status();
  }
}
