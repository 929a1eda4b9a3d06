#include "kernels/cpu/dense_linear.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/dense_cases.hpp"
#include "qpn8/error.hpp"
#include "qpn8/schedule.hpp"

namespace qpn8::cpu {
namespace {

using test::bits;
using test::DenseWeight;
using test::gaussian;
using test::relative_l2;

struct DenseShape {
  std::int64_t n;
  std::int64_t k;
};

constexpr DenseShape kDenseShapes[] = {{1, 1}, {3, 7}, {5, 16}, {33, 130}, {17, 515}, {64, 256}};

class DenseLinear : public test::OnEveryIsa {
 protected:
  Matrix<float> run(const DenseWeight& weight, MatrixView<const float> x, ThreadTeam& team) {
    Matrix<float> y(x.rows, weight.view().n);
    for (float& value : y.values()) value = std::nanf("");
    dense_linear(weight.view(), x, y.view(), workspace_, team);
    return y;
  }

  std::mt19937 random_{31};
  ThreadTeam team_{2};
  Workspace workspace_{0};  // up to 8 rows need none
};

INSTANTIATE_TEST_SUITE_P(Isa, DenseLinear, testing::ValuesIn(available_isas()), test::isa_name);

TEST_P(DenseLinear, AgreesWithTheReferenceForEveryStoredType) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const DenseShape& shape : kDenseShapes) {
      const DenseWeight weight(dtype, shape.n, shape.k, random_);
      for (std::int64_t rows = 1; rows <= kMaxPackedRows; ++rows) {
        const Matrix<float> x = gaussian(rows, shape.k, random_);
        Matrix<double> expected(rows, shape.n);
        dense_linear_reference(weight.view(), x.view(), expected.view());
        EXPECT_LE(relative_l2(run(weight, x.view(), team_).view(), expected.view()), 1e-6)
            << to_string(dtype) << " K=" << shape.k << " N=" << shape.n << " rows " << rows;
      }
    }
  }
}

TEST_P(DenseLinear, RowOfAnEightRowCallEqualsTheOneRowCallBitForBit) {
  for (const DenseShape& shape : kDenseShapes) {
    const DenseWeight weight(DType::f16, shape.n, shape.k, random_);
    const Matrix<float> x = gaussian(kMaxPackedRows, shape.k, random_);
    for (std::int64_t rows = 2; rows <= kMaxPackedRows; ++rows) {
      const Matrix<float> y = run(weight, x.view().row_range(0, rows), team_);
      for (std::int64_t row = 0; row < rows; ++row) {
        EXPECT_EQ(bits(y.view().row_range(row, 1)), bits(run(weight, x.view().row_range(row, 1), team_).view()))
            << "K=" << shape.k << " N=" << shape.n << " row " << row << " of " << rows;
      }
    }
  }
}

TEST_P(DenseLinear, OneTwoAndThreeThreadsGiveTheSameBits) {
  ThreadTeam one(1);
  ThreadTeam three(3);
  for (const DenseShape& shape : kDenseShapes) {
    const DenseWeight weight(DType::bf16, shape.n, shape.k, random_);
    const Matrix<float> x = gaussian(4, shape.k, random_);
    const auto expected = bits(run(weight, x.view(), one).view());
    EXPECT_EQ(bits(run(weight, x.view(), team_).view()), expected) << "K=" << shape.k << " N=" << shape.n;
    EXPECT_EQ(bits(run(weight, x.view(), three).view()), expected) << "K=" << shape.k << " N=" << shape.n;
  }
}

TEST_P(DenseLinear, SubnormalAndExtremeHalvesAreConvertedExactly) {
  // A one-hot input picks one weight out.
  std::vector<Half> weight;
  for (const int pattern : {0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x8000, 0x3c00, 0x0000, 0x3555, 0x0200, 0x7800, 0x1,
                            0x2, 0x4, 0x8, 0x10}) {
    weight.push_back(Half{static_cast<std::uint16_t>(pattern)});
  }
  const auto k = static_cast<std::int64_t>(weight.size());
  for (std::int64_t i = 0; i < k; ++i) {
    Matrix<float> x(1, k);
    x(0, i) = 1.0F;
    Matrix<float> y(1, 1);
    dense_linear({DType::f16, weight.data(), 1, k}, x.view(), y.view(), workspace_, team_);
    EXPECT_EQ(y(0, 0), to_float(weight[static_cast<std::size_t>(i)])) << i;
  }
}

TEST_P(DenseLinear, NoInputsGiveZeroAndNoRowsOrChannelsAreNoWork) {
  const DenseWeight empty(DType::f16, 5, 0, random_);
  const Matrix<float> y = run(empty, Matrix<float>(2, 0).view(), team_);
  EXPECT_THAT(y.values(), testing::Each(0.0F));
  EXPECT_NO_THROW(run(DenseWeight(DType::f16, 0, 5, random_), Matrix<float>(2, 5).view(), team_));
  EXPECT_NO_THROW(run(DenseWeight(DType::f16, 5, 5, random_), Matrix<float>(0, 5).view(), team_));
}

TEST(DenseLinearArguments, ShapesThatDisagreeAndOtherTypesAreRefused) {
  std::mt19937 random(1);
  ThreadTeam team(1);
  Workspace workspace;
  const DenseWeight weight(DType::f16, 3, 5, random);
  Matrix<float> x(1, 5);
  Matrix<float> y(1, 3);
  Matrix<float> wrong(2, 4);
  EXPECT_THAT([&] { dense_linear(weight.view(), wrong.view(), y.view(), workspace, team); },
              testing::ThrowsMessage<Error>(testing::StartsWith("dense product: x [2, 4] and y [1, 3]")));
  EXPECT_THROW(dense_linear(weight.view(), x.view(), wrong.view(), workspace, team), Error);
  DenseWeightView codes = weight.view();
  codes.dtype = DType::u8;
  EXPECT_THAT([&] { dense_linear(codes, x.view(), y.view(), workspace, team); },
              testing::ThrowsMessage<Error>("dense product: weights of type U8; F32, F16 and BF16 are"));
}

}  // namespace
}  // namespace qpn8::cpu
