#include "kernels/cpu/rms_norm.hpp"

#include <gtest/gtest.h>

#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;
using test::Strided;

constexpr float kEps = 1e-6F;
// Roundings of a sum of squares, a root, a division and two products.
constexpr double kTolerance = 1e-6;

TEST(RmsNorm, IsTheFormulaForAnyWidth) {
  for_each_isa([] {
    ThreadTeam team(2);
    for (const std::int64_t cols : {1, 3, 7, 16, 31, 32, 33, 80, 100, 1024, 4099}) {
      const Matrix<float> values = gaussian(5, cols, 1, 3.0F);
      const Matrix<float> weight = gaussian(1, cols, 2);
      Strided x(values);
      Matrix<double> expected(5, cols);
      rms_norm_reference(x.view(), weight.values(), kEps, expected.view());
      Strided out{Matrix<float>(5, cols)};
      rms_norm(x.view(), weight.values(), kEps, out.view(), team);
      EXPECT_LE(relative_l2(out.view(), expected.view()), kTolerance) << cols;
      rms_norm(x.view(), weight.values(), kEps, x.view(), team);
      EXPECT_TRUE(same_bits<float>(x.view(), out.view())) << "in place, " << cols;
    }
  });
}

TEST(RmsNorm, AZeroRowStaysZeroAndNoRowsAreNoWork) {
  for_each_isa([] {
    ThreadTeam team(1);
    const Matrix<float> zeros(2, 40);
    const Matrix<float> weight = gaussian(1, 40, 2);
    Matrix<float> out = gaussian(2, 40, 3);
    rms_norm(zeros.view(), weight.values(), kEps, out.view(), team);
    for (const float value : out.values()) EXPECT_EQ(value, 0.0F);
    rms_norm(zeros.view().row_range(0, 0), weight.values(), kEps, out.view().row_range(0, 0), team);
  });
}

TEST(RmsNorm, EpsilonIsAddedUnderTheRoot) {
  ThreadTeam team(1);
  Matrix<float> x(1, 4);
  for (float& value : x.values()) value = 3.0F;
  const std::vector<float> weight(4, 2.0F);
  rms_norm(x.view(), weight, 16.0F, x.view(), team);
  for (const float value : x.values()) EXPECT_FLOAT_EQ(value, 3.0F / 5.0F * 2.0F);
}

TEST(AddRmsNorm, AddsThenNormalisesBitForBit) {
  for_each_isa([] {
    ThreadTeam team(3);
    for (const std::int64_t cols : {5, 64, 333}) {
      const Matrix<float> a = gaussian(7, cols, 1);
      const Matrix<float> b = gaussian(7, cols, 2);
      const Matrix<float> weight = gaussian(1, cols, 3);
      Strided residual(a);
      Strided delta(b);
      Strided out{Matrix<float>(7, cols)};
      add_rms_norm(residual.view(), delta.view(), weight.values(), kEps, out.view(), team);
      Matrix<float> sum(7, cols);
      for (std::int64_t i = 0; i < 7; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) sum(i, j) = a(i, j) + b(i, j);
      }
      EXPECT_TRUE(same_bits<float>(residual.view(), sum.view()));
      rms_norm(sum.view(), weight.values(), kEps, sum.view(), team);
      EXPECT_TRUE(same_bits<float>(out.view(), sum.view()));
    }
  });
}

TEST(HeadRmsNorm, EveryHeadIsNormalisedByItself) {
  for_each_isa([] {
    ThreadTeam team(2);
    for (const std::int64_t head_dim : {16, 20, 80, 128}) {
      const Matrix<float> values = gaussian(4, 3 * head_dim, 1);
      const Matrix<float> weight = gaussian(1, head_dim, 2);
      Strided x(values);
      head_rms_norm(x.view(), weight.values(), kEps, team);
      for (std::int64_t head = 0; head < 3; ++head) {
        Matrix<float> one(4, head_dim);
        rms_norm(values.view().col_range(head * head_dim, head_dim), weight.values(), kEps, one.view(), team);
        EXPECT_TRUE(same_bits<float>(x.view().col_range(head * head_dim, head_dim), one.view())) << head_dim;
      }
    }
  });
}

TEST(RmsNorm, BitsDoNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    const Matrix<float> x = gaussian(100, 515, 1);
    const Matrix<float> weight = gaussian(1, 515, 2);
    Matrix<float> one(100, 515);
    ThreadTeam single(1);
    rms_norm(x.view(), weight.values(), kEps, one.view(), single);
    for (const int threads : {2, 3}) {
      ThreadTeam team(threads);
      Matrix<float> many(100, 515);
      rms_norm(x.view(), weight.values(), kEps, many.view(), team);
      EXPECT_TRUE(same_bits<float>(one.view(), many.view()));
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
