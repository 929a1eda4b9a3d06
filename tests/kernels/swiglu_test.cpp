#include "kernels/cpu/swiglu.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;
using test::Strided;

TEST(Swiglu, IsTheFormulaForAnyWidth) {
  for_each_isa([] {
    ThreadTeam team(2);
    for (const std::int64_t width : {1, 5, 16, 33, 96, 1000}) {
      Strided gate_up(gaussian(9, 2 * width, 1, 4.0F));
      Matrix<double> expected(9, width);
      swiglu_reference(gate_up.view(), expected.view());
      Strided out{Matrix<float>(9, width)};
      swiglu(gate_up.view(), out.view(), team);
      EXPECT_LE(relative_l2(out.view(), expected.view()), 3e-7) << width;
    }
  });
}

TEST(Swiglu, ALimitCutsTheGateAboveAndUpOnBothSides) {
  for_each_isa([] {
    ThreadTeam team(2);
    for (const std::int64_t width : {1, 5, 33}) {
      const Matrix<float> gate_up = gaussian(9, 2 * width, 1, 4.0F);
      Matrix<double> expected(9, width);
      swiglu_reference(gate_up.view(), expected.view(), 1.5F);
      Matrix<float> out(9, width);
      swiglu(gate_up.view(), out.view(), team, 1.5F);
      EXPECT_LE(relative_l2(out.view(), expected.view()), 3e-7) << width;
    }
    float nan_gate_up[4] = {std::nanf(""), 1.0F, 1.0F, std::nanf("")};
    float out[2] = {0.0F, 0.0F};
    swiglu({nan_gate_up, 1, 4}, {out, 1, 2}, team, 1.5F);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_TRUE(std::isnan(out[1]));
  });
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float swish(float gate) {
  ThreadTeam team(1);
  float gate_up[2] = {gate, 1.0F};
  float out = 0;
  swiglu({gate_up, 1, 2}, {&out, 1, 1}, team);
  return out;
}

TEST(Swiglu, EveryGateIsWithinAFewUlpOfItsValue) {
  constexpr std::int64_t kCount = 200'000;
  Matrix<float> gate_up(1, 2 * kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    gate_up(0, i) = -87.0F + static_cast<float>(i) * (174.0F / kCount);
    gate_up(0, kCount + i) = 1.0F;
  }
  Matrix<double> expected(1, kCount);
  swiglu_reference(gate_up.view(), expected.view());
  for_each_isa([&] {
    ThreadTeam team(1);
    Matrix<float> out(1, kCount);
    swiglu(gate_up.view(), out.view(), team);
    for (std::int64_t i = 0; i < kCount; ++i) {
      ASSERT_NEAR(out(0, i), expected(0, i), 5 * 1.2e-7 * std::abs(expected(0, i)) + 1e-44) << gate_up(0, i);
    }
  });
}

TEST(Swiglu, LargeGatesNeitherOverflowNorHideNan) {
  for_each_isa([] {
    EXPECT_EQ(swish(1e30F), 1e30F);
    EXPECT_EQ(swish(-1e30F), 0.0F);
    EXPECT_EQ(swish(-200.0F), 0.0F);
    EXPECT_EQ(swish(0.0F), 0.0F);
    EXPECT_EQ(swish(kInfinity), kInfinity);
    EXPECT_TRUE(std::isnan(swish(std::nanf(""))));
    EXPECT_TRUE(std::isnan(swish(-std::nanf(""))));
  });
}

TEST(Swiglu, BitsDoNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    const Matrix<float> gate_up = gaussian(60, 2 * 555, 1);
    ThreadTeam single(1);
    Matrix<float> one(60, 555);
    swiglu(gate_up.view(), one.view(), single);
    for (const int threads : {2, 3}) {
      ThreadTeam team(threads);
      Matrix<float> many(60, 555);
      swiglu(gate_up.view(), many.view(), team);
      EXPECT_TRUE(same_bits<float>(one.view(), many.view()));
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
