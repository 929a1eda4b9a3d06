#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <ostream>

#include "kernels/kernel_cases.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/linear.hpp"
#include "qpn8/quantize.hpp"

namespace qpn8 {
namespace {

using test::bits;
using test::gaussian;
using test::random_packed;
using test::relative_l2;

struct Case {
  std::int64_t n;
  std::int64_t k;
  ScaleKind kind;
  Schedule schedule;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "K=" << c.k << " N=" << c.n << (c.kind == ScaleKind::block ? " block " : " channel ")
             << to_string(c.schedule);
}

/// Widths that leave strips of every width over, lengths that cut blocks, and every kind of schedule.
std::vector<Case> cases() {
  std::vector<Case> result;
  for (const ScaleKind kind : {ScaleKind::channel, ScaleKind::block}) {
    result.push_back({32, 16, kind, {1, 1, false}});
    result.push_back({32 * 5, 144, kind, {1, 1, false}});
    result.push_back({32 * 5, 160, kind, {2, 2, true}});
    result.push_back({32 * 3, 240, kind, {5, 4, false}});
    result.push_back({32, 272, kind, {17, 1, true}});
  }
  return result;
}

class Qpn8Linear : public test::OnEveryIsa {
 protected:
  Matrix<float> run(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> x, ThreadTeam& team) {
    Matrix<float> y(x.rows, weight.n);
    for (float& value : y.values()) value = std::nanf("");
    multiply(weight, schedule, x, y.view(), workspace_, team);
    return y;
  }

  Matrix<float> run(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> x) {
    return run(weight, schedule, x, team_);
  }

  std::mt19937 random_{21};
  ThreadTeam team_{2};
  Workspace workspace_;
};

INSTANTIATE_TEST_SUITE_P(Isa, Qpn8Linear, testing::ValuesIn(cpu::available_isas()), test::isa_name);

TEST_P(Qpn8Linear, AgreesWithTheReference) {
  for (const Case& c : cases()) {
    const PackedWeight weight = random_packed(c.n, c.k, c.kind, random_, team_);
    for (std::int64_t rows = 1; rows <= kMaxPackedRows; ++rows) {
      const Matrix<float> x = gaussian(rows, c.k, random_);
      Matrix<double> expected(rows, c.n);
      multiply_reference(weight, x.view(), expected.view());
      EXPECT_LE(relative_l2(run(weight, c.schedule, x.view()).view(), expected.view()), 1e-6) << c << " rows " << rows;
    }
  }
}

TEST_P(Qpn8Linear, RowOfAnEightRowCallEqualsTheOneRowCallBitForBit) {
  for (const Case& c : cases()) {
    const PackedWeight weight = random_packed(c.n, c.k, c.kind, random_, team_);
    const Matrix<float> x = gaussian(kMaxPackedRows, c.k, random_);
    std::vector<std::vector<std::uint32_t>> alone;
    for (std::int64_t row = 0; row < kMaxPackedRows; ++row) {
      alone.push_back(bits(run(weight, c.schedule, x.view().row_range(row, 1)).view()));
    }
    for (std::int64_t rows = 2; rows <= kMaxPackedRows; ++rows) {
      const Matrix<float> y = run(weight, c.schedule, x.view().row_range(0, rows));
      for (std::int64_t row = 0; row < rows; ++row) {
        EXPECT_EQ(bits(y.view().row_range(row, 1)), alone[static_cast<std::size_t>(row)])
            << c << " row " << row << " of " << rows;
      }
    }
  }
}

TEST_P(Qpn8Linear, OneTwoAndThreeThreadsGiveTheSameBits) {
  ThreadTeam one(1);
  ThreadTeam three(3);
  for (const Case& c : cases()) {
    const PackedWeight weight = random_packed(c.n, c.k, c.kind, random_, team_);
    for (const std::int64_t rows : {1, 5, 8}) {
      const Matrix<float> x = gaussian(rows, c.k, random_);
      const auto expected = bits(run(weight, c.schedule, x.view(), one).view());
      EXPECT_EQ(bits(run(weight, c.schedule, x.view(), team_).view()), expected) << c << " rows " << rows;
      EXPECT_EQ(bits(run(weight, c.schedule, x.view(), three).view()), expected) << c << " rows " << rows;
    }
  }
}

TEST_P(Qpn8Linear, PrefetchNeverTouchesTheResult) {
  const PackedWeight weight = random_packed(96, 512, ScaleKind::channel, random_, team_);
  const Matrix<float> x = gaussian(3, 512, random_);
  EXPECT_EQ(bits(run(weight, {2, 2, true}, x.view()).view()), bits(run(weight, {2, 2, false}, x.view()).view()));
}

TEST_P(Qpn8Linear, EveryFiniteCodeIsDecodedExactly) {
  // With a one-hot input the product is the code's value itself. All 254 codes appear in every lane position of k, with
  // and without small codes beside them.
  constexpr std::int64_t kInputs = 256;
  Matrix<std::uint8_t> codes(32, kInputs);
  for (std::int64_t n = 0; n < 32; ++n) {
    for (std::int64_t k = 0; k < kInputs; ++k) {
      const auto code = static_cast<std::uint8_t>(k + n);
      codes(n, k) = is_nan_code(code) ? std::uint8_t{0x40} : code;
    }
  }
  const PackedWeight weight = pack_codes(codes.view(), std::vector<float>(32, 1.0F), team_);
  for (std::int64_t k = 0; k < kInputs; ++k) {
    Matrix<float> x(1, kInputs);
    x(0, k) = 1.0F;
    const Matrix<float> y = run(weight, Schedule{}, x.view());
    for (std::int64_t n = 0; n < 32; ++n) ASSERT_EQ(y(0, n), decode_e4m3(codes(n, k))) << int{codes(n, k)};
  }
}

TEST_P(Qpn8Linear, AnAllZeroRowGivesZero) {
  Matrix<Half> weight(32, 64);
  for (std::int64_t k = 0; k < 64; ++k) weight(3, k) = to_half(0.01F);
  const PackedWeight packed = pack_channelwise(weight.view(), team_);
  const Matrix<float> y = run(packed, Schedule{}, gaussian(1, 64, random_).view());
  for (std::int64_t n = 0; n < 32; ++n) {
    EXPECT_EQ(y(0, n) == 0.0F, n != 3) << n;
  }
}

TEST_P(Qpn8Linear, EveryRowOfAFusedProjectionKeepsItsOwnScale) {
  // Two projections a thousandfold apart: under one scale the smaller would drown in the larger one's rounding.
  Matrix<float> large = gaussian(32, 128, random_);
  Matrix<float> small = gaussian(32, 128, random_);
  for (float& value : large.values()) value *= 10.0F;
  for (float& value : small.values()) value *= 0.01F;
  const std::vector<RowSource> sources = {{RowSource::Type::f32, large.view().data, 32, 128},
                                          {RowSource::Type::f32, small.view().data, 32, 128}};
  const Matrix<float> x = gaussian(1, 128, random_);
  const Matrix<float> y = run(pack_channelwise(sources, 128, team_), Schedule{}, x.view());
  for (const auto& [part, first] : {std::pair(&large, 0), std::pair(&small, 32)}) {
    Matrix<double> expected(1, 32);
    for (std::int64_t n = 0; n < 32; ++n) {
      for (std::int64_t k = 0; k < 128; ++k) expected(0, n) += static_cast<double>(x(0, k)) * (*part)(n, k);
    }
    EXPECT_LE(relative_l2(y.view().col_range(first, 32), expected.view()), 0.05);
  }
}

TEST_P(Qpn8Linear, GroupsAreProductsOfTheirOwn) {
  constexpr std::int64_t kGroups = 3;
  std::vector<PackedWeight> groups;
  for (std::int64_t g = 0; g < kGroups; ++g) {
    groups.push_back(random_packed(64, 96, ScaleKind::channel, random_, team_));
  }
  const Matrix<float> x = gaussian(2, kGroups * 96, random_);
  Matrix<float> y(2, kGroups * 64);
  for (std::int64_t g = 0; g < kGroups; ++g) {
    multiply(groups[static_cast<std::size_t>(g)], Schedule{}, x.view().col_range(g * 96, 96),
             y.view().col_range(g * 64, 64), workspace_, team_);
  }
  for (std::int64_t g = 0; g < kGroups; ++g) {
    Matrix<double> expected(2, 64);
    multiply_reference(groups[static_cast<std::size_t>(g)], x.view().col_range(g * 96, 96), expected.view());
    EXPECT_LE(relative_l2(y.view().col_range(g * 64, 64), expected.view()), 1e-6) << g;
  }
}

TEST_P(Qpn8Linear, HugeAndTinyScalesDoNotOverflowOnTheWay) {
  for (const float scale : {std::numeric_limits<float>::max() / kE4M3Max, 0x1p-126F}) {
    Matrix<std::uint8_t> codes(32, 16);
    codes(0, 0) = 0x38;  // 1
    const PackedWeight weight = pack_codes(codes.view(), std::vector<float>(32, scale), team_);
    Matrix<float> x(1, 16);
    x(0, 0) = 1.0F;
    EXPECT_EQ(run(weight, Schedule{}, x.view())(0, 0), scale);
  }
}

TEST(Multiply, ShapesThatDisagreeAndSchedulesThatDoNotDivideAreRefused) {
  std::mt19937 random(1);
  ThreadTeam team(1);
  Workspace workspace;
  const PackedWeight weight = random_packed(64, 320, ScaleKind::channel, random, team);
  Matrix<float> x(1, 320);
  Matrix<float> y(1, 64);
  Matrix<float> narrow(1, 32);
  Matrix<float> tall(2, 64);
  EXPECT_THAT([&] { multiply(weight, Schedule{}, narrow.view(), y.view(), workspace, team); },
              testing::ThrowsMessage<Error>(testing::StartsWith("multiply: x [1, 32] and y [1, 64]")));
  EXPECT_THROW(multiply(weight, Schedule{}, x.view(), narrow.view(), workspace, team), Error);
  EXPECT_THROW(multiply(weight, Schedule{}, x.view(), tall.view(), workspace, team), Error);
  try {
    multiply(weight, Schedule{3, 1, false}, x.view(), y.view(), workspace, team);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::unsupported_shape);
  }
}

TEST(Multiply, NoRowsAreNoWork) {
  std::mt19937 random(1);
  ThreadTeam team(1);
  Workspace workspace;
  const PackedWeight weight = random_packed(32, 16, ScaleKind::channel, random, team);
  Matrix<float> x(0, 16);
  Matrix<float> y(0, 32);
  EXPECT_NO_THROW(multiply(weight, Schedule{}, x.view(), y.view(), workspace, team));
}

}  // namespace
}  // namespace qpn8
