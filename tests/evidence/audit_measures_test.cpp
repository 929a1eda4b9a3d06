#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "evidence/audit_diagnosis.hpp"
#include "evidence/audit_measures.hpp"
#include "evidence/audit_patterns.hpp"
#include "evidence/fused_gate_up.hpp"
#include "qpn8/half.hpp"
#include "support/numbers.hpp"

namespace qpn8 {
namespace {

Matrix<float> row(std::initializer_list<float> values) {
  Matrix<float> matrix(1, static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), matrix.values().begin());
  return matrix;
}

Measures compare(const Matrix<float>& result, const Matrix<float>& reference) {
  return measure(result.view(), reference.view());
}

TEST(Measures, EqualNumbersAreExact) {
  const Matrix<float> values = test::gaussian(3, 50, 1);
  const Measures measures = compare(values, values);
  EXPECT_EQ(measures.outputs, 150);
  EXPECT_EQ(measures.exact_fp16_fraction, 1);
  EXPECT_EQ(measures.relative_l2, 0);
  EXPECT_EQ(measures.relative_l2_fp16, 0);
  EXPECT_EQ(measures.max_ulp, 0);
  EXPECT_TRUE(measures.finite);
}

TEST(Measures, WhatFp16CannotTellApartIsExactAndShowsInRelativeL2Only) {
  const Measures measures = compare(row({1.0F + 0x1p-20F, -2.0F}), row({1.0F, -2.0F}));
  EXPECT_EQ(measures.exact_fp16_fraction, 1);
  EXPECT_EQ(measures.relative_l2_fp16, 0);
  EXPECT_NEAR(measures.relative_l2, 0x1p-20 / std::sqrt(5.0), 1e-12);
}

TEST(Measures, CountsFp16NumbersBetweenTwo) {
  // FP16 numbers are 2^-10 apart from 1 to 2, and half as far below 1.
  EXPECT_EQ(compare(row({1.0F + 3 * 0x1p-10F}), row({1.0F})).max_ulp, 3);
  EXPECT_EQ(compare(row({1.0F - 0x1p-11F}), row({1.0F + 0x1p-10F})).max_ulp, 2);
  EXPECT_EQ(compare(row({0x1p-24F}), row({-0x1p-24F})).max_ulp, 2) << "subnormal numbers on both sides of zero";
  EXPECT_EQ(compare(row({0.0F}), row({-0.0F})).max_ulp, 0);
}

TEST(Measures, AFlippedRoundingIsAWholeUlpOfTheFp16L2) {
  // 4 + 3/4 ulp rounds up, 4 + 1/4 ulp down.
  const float ulp = 0x1p-8F;
  const Measures measures = compare(row({3.0F, 4.0F + 0.75F * ulp}), row({3.0F, 4.0F + 0.25F * ulp}));
  EXPECT_NEAR(measures.relative_l2_fp16, ulp / 5, 1e-9);
  EXPECT_NEAR(measures.relative_l2, ulp / 10, 1e-6);
  EXPECT_EQ(measures.exact_fp16_fraction, 0.5);
}

TEST(Measures, NotANumberIsNotExactWhateverTheReferenceIs) {
  const float nan = std::nanf("");
  EXPECT_FALSE(compare(row({nan, 1.0F}), row({1.0F, 1.0F})).finite);
  EXPECT_FALSE(compare(row({nan}), row({nan})).finite);
  EXPECT_FALSE(AuditBounds().hold(compare(row({nan}), row({nan}))));
  EXPECT_FALSE(compare(row({1e6F}), row({1.0F})).finite) << "beyond FP16 where the reference is not";
  EXPECT_TRUE(compare(row({1e6F}), row({1.1e6F})).finite) << "both beyond FP16";
}

TEST(AuditBounds, AreThePublishedOnes) {
  const AuditBounds bounds;
  EXPECT_TRUE(bounds.hold({.outputs = 1, .exact_fp16_fraction = 0.99707, .relative_l2 = 1.641e-5}));
  EXPECT_FALSE(bounds.hold({.outputs = 1, .exact_fp16_fraction = 0.99706, .relative_l2 = 1e-6}));
  EXPECT_FALSE(bounds.hold({.outputs = 1, .exact_fp16_fraction = 1, .relative_l2 = 1.642e-5}));
}

TEST(ActivationPatterns, HaveTheirScaleAndTailAndFitFp16) {
  const auto deviation = [](const Matrix<float>& x) {
    double squares = 0;
    for (const float value : x.values()) squares += static_cast<double>(value) * value;
    return std::sqrt(squares / static_cast<double>(x.values().size()));
  };
  const auto draw = [](ActivationPattern pattern) { return synthetic_activations(pattern, 64, 256, 7); };
  EXPECT_NEAR(deviation(draw(ActivationPattern::gaussian)), 1, 0.03);
  EXPECT_NEAR(deviation(draw(ActivationPattern::small_gaussian)), 0.01, 0.0003);
  const Matrix<float> outliers = draw(ActivationPattern::outliers);
  std::int64_t wide_channels = 0;
  for (std::int64_t j = 0; j < 256; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < 64; ++i) sum += std::abs(outliers(i, j));
    wide_channels += sum / 64 > 10 ? 1 : 0;
  }
  EXPECT_GE(wide_channels, 1);
  EXPECT_LE(wide_channels, 4);
  for (const float value : outliers.values()) ASSERT_EQ(value, to_float(to_half(value)));
}

TEST(ActivationPatterns, AreFixedByTheirSeed) {
  for (const ActivationPattern pattern : kSyntheticPatterns) {
    const Matrix<float> once = synthetic_activations(pattern, 2, 64, 3);
    const Matrix<float> again = synthetic_activations(pattern, 2, 64, 3);
    const Matrix<float> other = synthetic_activations(pattern, 2, 64, 4);
    EXPECT_TRUE(test::same_bits(once.view(), again.view())) << to_string(pattern);
    EXPECT_FALSE(test::same_bits(once.view(), other.view())) << to_string(pattern);
  }
}

TEST(FusedGateUp, IsNearerToTheTruthThanTheRoundedFormAndDiffersFromIt) {
  ThreadTeam team(1);
  const Matrix<float> gate_up = test::gaussian(16, 2048, 5);
  Matrix<double> wide(16, 2048);
  std::copy(gate_up.values().begin(), gate_up.values().end(), wide.values().begin());
  const Matrix<float> fused = fused_gate_up(gate_up, team);
  const Matrix<float> unfused = unfused_gate_up(gate_up, team);
  const Matrix<double> exact = exact_gate_up(wide);
  EXPECT_GT(measure(fused.view(), exact.view()).exact_fp16_fraction, 0.999);
  const Measures apart = measure(fused.view(), unfused.view());
  EXPECT_LT(apart.exact_fp16_fraction, 0.7);
  EXPECT_GT(apart.relative_l2, 1e-4);
  EXPECT_FALSE(AuditBounds().hold(apart));
}

/// A product of four rows and eight channels, all as it should be.
struct Product {
  Matrix<float> y = test::gaussian(4, 8, 11);
  ExactProduct exact{{4, 8}, {4, 8}};

  Product() {
    for (std::int64_t t = 0; t < 4; ++t) {
      for (std::int64_t c = 0; c < 8; ++c) {
        exact.values(t, c) = y(t, c);
        exact.magnitudes(t, c) = std::abs(y(t, c));
      }
    }
  }
  std::string fault() const { return describe_fault(y, exact, false); }
};

TEST(Diagnosis, NamesEachKindOfFault) {
  EXPECT_EQ(Product().fault(), "");

  Product scaled;
  for (std::int64_t t = 0; t < 4; ++t) scaled.y(t, 3) *= 1.25F;
  EXPECT_EQ(scaled.fault(), "1 of 8 channels are wrong: channel 3 is 1.25 times what it should be: a wrong scale");

  Product swapped;
  for (std::int64_t t = 0; t < 4; ++t) std::swap(swapped.y(t, 2), swapped.y(t, 5));
  EXPECT_EQ(swapped.fault(), "2 of 8 channels are wrong: channels 2 and 5 are swapped");

  Product missing;
  missing.y(1, 7) = std::nanf("");
  EXPECT_EQ(missing.fault(), "1 of 8 channels are wrong: channel 7 is not written");

  Product off;
  off.y(2, 0) += 0.5F;
  EXPECT_EQ(off.fault(), "1 of 8 channels are wrong: channel 0 is off by up to 0.5");
}

TEST(Diagnosis, RoundingIsNoFault) {
  Product rounded;
  for (float& value : rounded.y.values()) value = to_float(to_half(value));
  EXPECT_NE(rounded.fault(), "");
  EXPECT_EQ(describe_fault(rounded.y, rounded.exact, true), "");
}

}  // namespace
}  // namespace qpn8
