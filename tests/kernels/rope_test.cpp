#include "kernels/cpu/rope.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;
using test::Strided;

std::vector<float> frequencies(std::int64_t pairs) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < pairs; ++i) {
    values.push_back(std::pow(10000.0F, -static_cast<float>(i) / static_cast<float>(pairs)));
  }
  return values;
}

TEST(RopeAngles, AreCosinesThenSinesOfTheFp32ProductTimesTheScale) {
  const std::vector<std::int32_t> positions = {0, 1, 17, 4095, 131071};
  const std::vector<float> f = frequencies(10);
  Matrix<float> angles(5, 20);
  ThreadTeam team(2);
  rope_angles(positions, f, 1.25F, angles.view(), team);
  for (std::size_t t = 0; t < positions.size(); ++t) {
    for (std::size_t i = 0; i < f.size(); ++i) {
      const float angle = static_cast<float>(positions[t]) * f[i];
      const auto row = static_cast<std::int64_t>(t);
      const auto col = static_cast<std::int64_t>(i);
      EXPECT_NEAR(angles(row, col), 1.25 * std::cos(static_cast<double>(angle)), 2e-7);
      EXPECT_NEAR(angles(row, col + 10), 1.25 * std::sin(static_cast<double>(angle)), 2e-7);
    }
  }
}

struct Rotation {
  void (*kernel)(MatrixView<float>, std::int64_t, MatrixView<const float>, ThreadTeam&);
  bool halves;
};

class Rope : public testing::TestWithParam<Rotation> {};

INSTANTIATE_TEST_SUITE_P(Pairings, Rope,
                         testing::Values(Rotation{rope_halves, true}, Rotation{rope_interleaved, false}),
                         [](const auto& rotation) { return rotation.param.halves ? "Halves" : "Interleaved"; });

TEST_P(Rope, IsTheFormulaForEveryHeadWidthAndLeavesTheOtherDimensionsAlone) {
  for_each_isa([] {
    ThreadTeam team(2);
    for (const std::int64_t head_dim : {16, 20, 32, 64, 80, 128, 256}) {
      for (const std::int64_t rotated : {head_dim, head_dim / 2}) {
        const Matrix<float> values = gaussian(3, 2 * head_dim, 1);
        Matrix<float> angles(3, rotated);
        const std::vector<std::int32_t> positions = {3, 4, 900};
        rope_angles(positions, frequencies(rotated / 2), 1.0F, angles.view(), team);
        Matrix<double> expected(3, 2 * head_dim);
        for (std::size_t i = 0; i < values.values().size(); ++i) expected.values()[i] = values.values()[i];
        rope_reference(expected.view(), head_dim, angles.view(), GetParam().halves ? rotated / 2 : 1);

        Strided x(values);
        GetParam().kernel(x.view(), head_dim, angles.view(), team);
        EXPECT_LE(relative_l2(x.view(), expected.view()), 3e-7) << head_dim << " " << rotated;
        const auto untouched = [&](MatrixView<const float> m) { return m.col_range(rotated, head_dim - rotated); };
        EXPECT_TRUE(same_bits<float>(untouched(x.view()), untouched(values.view())));
      }
    }
  });
}

TEST_P(Rope, PositionZeroRotatesNothing) {
  for_each_isa([] {
    ThreadTeam team(1);
    const Matrix<float> values = gaussian(1, 40, 1);
    Matrix<float> angles(1, 20);
    const std::vector<std::int32_t> positions = {0};
    rope_angles(positions, frequencies(10), 1.0F, angles.view(), team);
    Strided x(values);
    GetParam().kernel(x.view(), 20, angles.view(), team);
    EXPECT_TRUE(same_bits<float>(x.view(), values.view()));
  });
}

TEST_P(Rope, BitsDoNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    std::vector<std::int32_t> positions(200);
    std::iota(positions.begin(), positions.end(), 7);
    const Matrix<float> values = gaussian(200, 6 * 32, 1);
    Matrix<float> first;
    for (const int threads : {1, 2, 3}) {
      ThreadTeam team(threads);
      Matrix<float> angles(200, 32);
      rope_angles(positions, frequencies(16), 1.0F, angles.view(), team);
      Matrix<float> x = values;
      GetParam().kernel(x.view(), 32, angles.view(), team);
      if (threads == 1) first = x;
      EXPECT_TRUE(same_bits<float>(x.view(), first.view())) << threads;
    }
  });
}

TEST(RopeTails, RotateTheLastDimensionsAndNegatedFrequenciesTurnThemBack) {
  for_each_isa([] {
    ThreadTeam team(2);
    for (const auto& [head_dim, rotated] : {std::pair(16, 16), std::pair(20, 6), std::pair(80, 34)}) {
      const Matrix<float> values = gaussian(3, 3 * head_dim, 1);
      Matrix<float> angles(3, rotated);
      const std::vector<std::int32_t> positions = {3, 4, 900};
      const std::vector<float> forward = frequencies(rotated / 2);
      rope_angles(positions, forward, 1.0F, angles.view(), team);
      Matrix<double> expected(3, rotated);  // of the second head
      for (std::int64_t t = 0; t < 3; ++t) {
        for (std::int64_t i = 0; i < rotated; ++i) expected(t, i) = values(t, 2 * head_dim - rotated + i);
      }
      rope_reference(expected.view(), rotated, angles.view(), 1);

      Strided x(values);
      rope_tails(x.view(), head_dim, angles.view(), team);
      EXPECT_LE(relative_l2(x.view().col_range(2 * head_dim - rotated, rotated), expected.view()), 3e-7) << head_dim;
      const auto untouched = [&, head_dim = head_dim, rotated = rotated](MatrixView<const float> m) {
        return m.col_range(head_dim, head_dim - rotated);
      };
      EXPECT_TRUE(same_bits<float>(untouched(x.view()), untouched(values.view()))) << head_dim;

      std::vector<float> backward = forward;
      for (float& frequency : backward) frequency = -frequency;
      rope_angles(positions, backward, 1.0F, angles.view(), team);
      rope_tails(x.view(), head_dim, angles.view(), team);
      EXPECT_LE(relative_l2(x.view(), values.view()), 3e-7) << head_dim;
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
