#include "kernels/cpu/gemm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/dense_cases.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cpu {
namespace {

using test::bits;
using test::DenseWeight;
using test::gaussian;
using test::random_packed;
using test::relative_l2;

struct GemmShape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// Edges of strips, panels and blocks of k, alone and together.
constexpr GemmShape kGemmShapes[] = {{9, 1, 1},    {9, 32, 16},   {13, 33, 257}, {12, 31, 3},
                                     {25, 70, 64}, {20, 5, 1025}, {40, 160, 60}, {13, 129, 512}};

template <class Weight>
Matrix<float> run(const Weight& weight, MatrixView<const float> x, Workspace& workspace, ThreadTeam& team) {
  Matrix<float> y(x.rows, weight.n);
  for (float& value : y.values()) value = std::nanf("");
  gemm(weight, x, y.view(), workspace, team);
  return y;
}

class Gemm : public test::OnEveryIsa {
 protected:
  std::mt19937 random_{41};
  ThreadTeam team_{2};
  Workspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(Isa, Gemm, testing::ValuesIn(available_isas()), test::isa_name);

TEST_P(Gemm, DenseWeightsOfEveryTypeAgreeWithTheReference) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const GemmShape& shape : kGemmShapes) {
      const DenseWeight weight(dtype, shape.n, shape.k, random_);
      const Matrix<float> x = gaussian(shape.m, shape.k, random_);
      Matrix<double> expected(shape.m, shape.n);
      dense_linear_reference(weight.view(), x.view(), expected.view());
      EXPECT_LE(relative_l2(run(weight.view(), x.view(), workspace_, team_).view(), expected.view()), 1e-6)
          << to_string(dtype) << " M=" << shape.m << " K=" << shape.k << " N=" << shape.n;
    }
  }
}

TEST_P(Gemm, EveryNumberOfRowsAgreesWithTheReference) {
  const DenseWeight weight(DType::f16, 35, 40, random_);
  for (std::int64_t m = 1; m <= 30; ++m) {
    const Matrix<float> x = gaussian(m, 40, random_);
    Matrix<double> expected(m, 35);
    dense_linear_reference(weight.view(), x.view(), expected.view());
    EXPECT_LE(relative_l2(run(weight.view(), x.view(), workspace_, team_).view(), expected.view()), 1e-6) << m;
  }
}

TEST_P(Gemm, PackedWeightsAgreeWithTheReference) {
  for (const ScaleKind kind : {ScaleKind::channel, ScaleKind::block}) {
    for (const GemmShape& shape : {GemmShape{9, 32, 16}, GemmShape{13, 160, 272}, GemmShape{14, 96, 528}}) {
      const PackedWeight weight = random_packed(shape.n, shape.k, kind, random_, team_);
      const Matrix<float> x = gaussian(shape.m, shape.k, random_);
      Matrix<double> expected(shape.m, shape.n);
      multiply_reference(weight, x.view(), expected.view());
      EXPECT_LE(relative_l2(run(weight, x.view(), workspace_, team_).view(), expected.view()), 1e-6)
          << "M=" << shape.m << " K=" << shape.k << " N=" << shape.n;
    }
  }
}

TEST_P(Gemm, MultiplyTakesThisRouteAboveEightRowsAndAgreesWithThePackedKernel) {
  const PackedWeight weight = random_packed(96, 320, ScaleKind::channel, random_, team_);
  const Matrix<float> x = gaussian(9, 320, random_);
  Matrix<float> nine(9, 96);
  multiply(weight, Schedule{}, x.view(), nine.view(), workspace_, team_);
  EXPECT_EQ(bits(nine.view()), bits(run(weight, x.view(), workspace_, team_).view()));
  Matrix<float> eight(8, 96);
  multiply(weight, Schedule{}, x.view().row_range(0, 8), eight.view(), workspace_, team_);
  Matrix<double> expected(8, 96);
  std::copy(eight.values().begin(), eight.values().end(), expected.values().begin());
  EXPECT_LE(relative_l2(nine.view().row_range(0, 8), expected.view()), 1e-6);
}

TEST_P(Gemm, NeitherThreadsNorTheSizeOfTheWorkspaceTouchTheBits) {
  ThreadTeam one(1);
  ThreadTeam three(3);
  const DenseWeight dense(DType::f16, 130, 300, random_);
  const PackedWeight packed = random_packed(128, 304, ScaleKind::block, random_, team_);
  const Matrix<float> x = gaussian(50, 304, random_);
  const auto dense_x = x.view().col_range(0, 300);
  Workspace least(gemm_workspace_bytes(304, 3));
  const auto dense_bits = bits(run(dense.view(), dense_x, workspace_, one).view());
  const auto packed_bits = bits(run(packed, x.view(), workspace_, one).view());
  for (Workspace* workspace : {&workspace_, &least}) {
    for (ThreadTeam* team : {&one, &team_, &three}) {
      EXPECT_EQ(bits(run(dense.view(), dense_x, *workspace, *team).view()), dense_bits) << team->size();
      EXPECT_EQ(bits(run(packed, x.view(), *workspace, *team).view()), packed_bits) << team->size();
    }
  }
}

TEST_P(Gemm, NoInputsGiveZero) {
  const DenseWeight weight(DType::f32, 5, 0, random_);
  EXPECT_THAT(run(weight.view(), Matrix<float>(10, 0).view(), workspace_, team_).values(), testing::Each(0.0F));
}

TEST_P(Gemm, OneWorkspaceServesOneProductAfterTheOther) {
  const PackedWeight small = random_packed(32, 64, ScaleKind::channel, random_, team_);
  const PackedWeight large = random_packed(128, 512, ScaleKind::block, random_, team_);
  const Matrix<float> x = gaussian(20, 512, random_);
  const auto before = bits(run(small, x.view().col_range(0, 64), workspace_, team_).view());
  run(large, x.view(), workspace_, team_);
  EXPECT_EQ(bits(run(small, x.view().col_range(0, 64), workspace_, team_).view()), before);
}

TEST(GemmWorkspace, TooSmallAnOneIsRefusedNamingBothNumbers) {
  std::mt19937 random(1);
  ThreadTeam team(2);
  const PackedWeight weight = random_packed(32, 64, ScaleKind::channel, random, team);
  const Matrix<float> x = gaussian(9, 64, random);
  Matrix<float> y(9, 32);
  const std::size_t needed = gemm_workspace_bytes(64, 2);
  Workspace small(needed - 1);
  EXPECT_THAT([&] { multiply(weight, Schedule{}, x.view(), y.view(), small, team); },
              testing::ThrowsMessage<Error>("workspace: holds " + std::to_string(needed - 1) +
                                            " bytes, but this product needs at least " + std::to_string(needed)));
}

}  // namespace
}  // namespace qpn8::cpu
