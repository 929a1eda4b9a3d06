#include "evidence/audit_patterns.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"
#include "qpn8/half.hpp"

namespace qpn8 {
namespace {

constexpr std::int64_t kChannelsAnOutlier = 64;
constexpr double kOutlierFactor = 30;
// An activation that does not fit FP16 is a fault of the model, and t has no bound of its own.
constexpr double kLargest = 1000;

/// Box and Muller, one of the two numbers.
double gaussian(Random& random) {
  const auto uniform = [&] { return (static_cast<double>(random.next() >> 11U) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double student_t3(Random& random) {
  const double numerator = gaussian(random);
  double squares = 0;
  for (int i = 0; i < 3; ++i) {
    const double value = gaussian(random);
    squares += value * value;
  }
  return numerator / std::sqrt(squares / 3);
}

/// One factor a channel: where the outliers are. At least one channel is one.
std::vector<double> outlier_factors(std::int64_t k, Random& random) {
  std::vector<double> factors(static_cast<std::size_t>(k), 1.0);
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, k / kChannelsAnOutlier); ++i) {
    factors[static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(k)))] = kOutlierFactor;
  }
  return factors;
}

double draw(ActivationPattern pattern, Random& random) {
  switch (pattern) {
    case ActivationPattern::gaussian:
      return gaussian(random);
    case ActivationPattern::small_gaussian:
      return 0.01 * gaussian(random);
    default:
      check(pattern == ActivationPattern::outliers, "a pattern that is drawn");
      return student_t3(random);
  }
}

}  // namespace

std::string_view to_string(ActivationPattern pattern) {
  constexpr std::array<std::string_view, 4> kNames = {"gaussian", "gaussian_0.01", "outliers", "captured"};
  return kNames.at(static_cast<std::size_t>(pattern));
}

Matrix<float> synthetic_activations(ActivationPattern pattern, std::int64_t rows, std::int64_t k, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> factors(static_cast<std::size_t>(k), 1.0);
  if (pattern == ActivationPattern::outliers) factors = outlier_factors(k, random);
  Matrix<float> values(rows, k);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < k; ++j) {
      const double value =
          std::clamp(draw(pattern, random), -kLargest, kLargest) * factors[static_cast<std::size_t>(j)];
      values(i, j) = to_float(to_half(static_cast<float>(value)));
    }
  }
  return values;
}

}  // namespace qpn8
