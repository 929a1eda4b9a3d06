#include "kernels/cpu/shared_launch.hpp"

#include <gtest/gtest.h>

#include "kernels/cpu/gated_streams.hpp"
#include "kernels/cpu/qpn8_linear.hpp"
#include "kernels/kernel_cases.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::random_packed;
using test::same_bits;

constexpr Schedule kSharedSchedule = {.split_k = 4, .accumulator_chains = 1, .prefetch = true};

TEST(SharedLaunch, TheSmallProductHasTheBitsOfTheSeparateOne) {
  for_each_isa([] {
    std::mt19937 random(1);
    ThreadTeam team(3);
    Workspace workspace;
    const PackedWeight weight = random_packed(288, 64, ScaleKind::channel, random, team);
    for (const std::int64_t small_n : {1, 24, 130}) {
      const Matrix<float> small_weight = gaussian(small_n, 64, 2);
      const DenseWeightView small = {DType::f32, small_weight.values().data(), small_n, 64};
      for (const std::int64_t rows : {1, 2, 8}) {
        const Matrix<float> x = gaussian(rows, 64, 3);
        // Both write their columns of one matrix.
        Matrix<float> shared(rows, 288 + small_n);
        Matrix<float> apart(rows, 288 + small_n);
        qpn8_linear_and_dense(weight, kSharedSchedule, small, x.view(), shared.view().col_range(0, 288),
                              shared.view().col_range(288, small_n), workspace, team);
        qpn8_linear(weight, kSharedSchedule, x.view(), apart.view().col_range(0, 288), workspace, team);
        dense_linear(small, x.view(), apart.view().col_range(288, small_n), workspace, team);
        EXPECT_TRUE(same_bits<float>(shared.view(), apart.view())) << small_n << " " << rows;
      }
    }
  });
}

TEST(SharedLaunch, MixedGatesHaveTheBitsOfTheSeparateOperators) {
  for_each_isa([] {
    std::mt19937 random(1);
    ThreadTeam team(3);
    Workspace workspace;
    for (const std::int64_t streams : {1, 2, 4}) {
      for (const std::int64_t width : {32, 160}) {
        const std::int64_t wide = streams * width;
        const PackedWeight weight = random_packed(wide, 64, ScaleKind::channel, random, team);
        const Matrix<float> low = gaussian(1, 64, 3);
        const Matrix<float> normed = gaussian(1, wide, 4);
        Matrix<float> gates(1, wide);
        Matrix<float> shared(1, width);
        Matrix<float> apart(1, width);
        qpn8_linear_and_mix(weight, kSharedSchedule, low.view(), normed.view(), gates.view(), shared.view(), workspace,
                            team);
        qpn8_linear(weight, kSharedSchedule, low.view(), gates.view(), workspace, team);
        mix_streams(normed.view(), gates.view(), apart.view(), team);
        EXPECT_TRUE(same_bits<float>(shared.view(), apart.view())) << streams << " " << width;
      }
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
