#include "evidence/audit_measures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/check.hpp"
#include "qpn8/half.hpp"

namespace qpn8 {
namespace {

constexpr std::uint16_t kSign = 0x8000;
constexpr std::uint16_t kInfinity = 0x7c00;

bool is_finite(Half value) { return (value.bits & kInfinity) != kInfinity; }

/// Position of a number on the line of all FP16 numbers; both zeros are 0.
std::int64_t position(Half value) {
  const std::int64_t magnitude = value.bits & ~kSign;
  return (value.bits & kSign) != 0 ? -magnitude : magnitude;
}

/// Squares of differences over squares of references.
struct RelativeNorm {
  double difference = 0;
  double reference = 0;

  void add(double result, double expected) {
    difference += (result - expected) * (result - expected);
    reference += expected * expected;
  }
  double value() const { return difference == 0 ? 0 : std::sqrt(difference / reference); }
};

template <class T>
Measures measure_all(MatrixView<const float> result, MatrixView<const T> reference) {
  check(result.rows == reference.rows && result.cols == reference.cols, "results and references pair up");
  Measures measures;
  RelativeNorm rounded;
  RelativeNorm delivered;
  std::int64_t exact = 0;
  for (std::int64_t i = 0; i < result.rows; ++i) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(result.cols); ++j) {
      const float value = result.row(i)[j];
      const T expected = reference.row(i)[j];
      const Half half = to_half(value);
      // A double rounds to FP32 first: two roundings may differ from one, by one number in 2^13 and by one ulp.
      const Half expected_half = to_half(static_cast<float>(expected));
      const std::int64_t ulps = std::abs(position(half) - position(expected_half));
      exact += ulps == 0 ? 1 : 0;
      measures.max_ulp = std::max(measures.max_ulp, ulps);
      delivered.add(value, expected);
      if (is_finite(half) && is_finite(expected_half)) {
        rounded.add(to_float(half), to_float(expected_half));
      } else if (ulps != 0 || std::isnan(value)) {
        measures.finite = false;
      }
    }
  }
  measures.outputs = result.rows * result.cols;
  if (measures.outputs > 0) {
    measures.exact_fp16_fraction = static_cast<double>(exact) / static_cast<double>(measures.outputs);
  }
  measures.relative_l2 = delivered.value();
  measures.relative_l2_fp16 = rounded.value();
  return measures;
}

}  // namespace

Measures measure(MatrixView<const float> result, MatrixView<const double> reference) {
  return measure_all(result, reference);
}

Measures measure(MatrixView<const float> result, MatrixView<const float> reference) {
  return measure_all(result, reference);
}

}  // namespace qpn8
