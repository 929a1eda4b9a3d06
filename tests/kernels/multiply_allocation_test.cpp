#include <gtest/gtest.h>

#include "kernels/dense_cases.hpp"
#include "kernels/kernel_cases.hpp"
#include "qpn8/linear.hpp"
#include "support/allocation_count.hpp"

namespace qpn8 {
namespace {

TEST(Multiply, AllocatesNothingForUpToEightRowsAfterTheFirstCall) {
  std::mt19937 random(1);
  ThreadTeam team(2);
  Workspace workspace;
  const PackedWeight weight = test::random_packed(64, 128, ScaleKind::block, random, team);
  const test::DenseWeight dense(DType::f16, 64, 128, random);
  const Matrix<float> x = test::gaussian(8, 128, random);
  Matrix<float> y(8, 64);
  const auto multiply_both = [&](std::int64_t rows) {
    multiply(weight, Schedule{2, 2, true}, x.view().row_range(0, rows), y.view().row_range(0, rows), workspace, team);
    cpu::dense_linear(dense.view(), x.view().row_range(0, rows), y.view().row_range(0, rows), workspace, team);
  };
  multiply_both(1);
  const long before = test::allocation_count();
  for (std::int64_t rows = 1; rows <= 8; ++rows) multiply_both(rows);
  EXPECT_EQ(test::allocation_count(), before);
}

}  // namespace
}  // namespace qpn8
