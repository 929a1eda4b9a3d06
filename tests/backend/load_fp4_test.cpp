#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/forwarding_backend.hpp"
#include "backend/load_fixture.hpp"
#include "qpn8/error.hpp"
#include "quant/e2m1.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using test::exact_product;
using test::gaussian;
using test::planned;
using test::product;
using test::relative_l2;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kRows = 12;
constexpr std::int64_t kCols = 96;

std::vector<std::byte> codes(std::int64_t count) {
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(i * 41 % 256));
  return bytes;
}

std::vector<std::byte> scales(std::int64_t count) {
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(124 + i % 5));
  return bytes;
}

class LoadFp4 : public test::LoadFixture {
 protected:
  void add(const std::string& name, DType dtype = DType::i8) {
    file_.add_bytes(name, dtype, kRows, kCols / 2, codes(kRows * kCols / 2));
    file_.add_bytes(name + "_scale_inv", DType::f8_e8m0, kRows, kCols / 32, scales(kRows * kCols / 32));
  }

  WeightPart part(const std::string& name) const {
    WeightPart part = file_.part(name);
    part.cols *= 2;
    return part;
  }

  /// Rows and columns of what add() stores.
  static Matrix<float> numbers(std::int64_t first_row, std::int64_t rows, std::int64_t first_col, std::int64_t cols) {
    const std::vector<std::byte> all = codes(kRows * kCols / 2);
    const std::vector<std::byte> all_scales = scales(kRows * kCols / 32);
    Matrix<float> values(rows, cols);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) {
        const std::int64_t row = first_row + i;
        const std::int64_t col = first_col + j;
        const auto* stored = reinterpret_cast<const std::uint8_t*>(all.data()) + row * kCols / 2;
        const int scale = std::to_integer<int>(all_scales[static_cast<std::size_t>(row * kCols / 32 + col / 32)]);
        values(i, j) = std::ldexp(decode_e2m1(e2m1_at(stored, col)), scale - 127);
      }
    }
    return values;
  }
};

TEST_F(LoadFp4, StackedPartsAreMultipliedAsTheNumbersThatTheyStandFor) {
  add("a");
  add("b", DType::u8);
  open();
  WeightPart second = part("b");
  second.first_row = 3;
  second.rows = 5;
  const auto linear = load(planned(Route::dense, kRows + 5, kCols), {part("a"), second});
  EXPECT_EQ(linear->bytes(), (kRows + 5) * (kCols / 2 + kCols / 32)) << "as they are stored";
  const Matrix<float> weight = test::stacked({numbers(0, kRows, 0, kCols), numbers(3, 5, 0, kCols)});
  for (const std::int64_t m : {1, 20}) {
    const Matrix<float> x = gaussian(m, kCols, 1);
    EXPECT_LE(relative_l2(product(*backend_, *linear, x).view(), exact_product(x, weight).view()), 1e-6) << m;
  }
}

TEST_F(LoadFp4, AColumnSliceOfWholeGroupsIsItsOwnWeight) {
  add("a");
  open();
  WeightPart slice = part("a");
  slice.first_col = 32;
  slice.cols = 64;
  const auto linear = load(planned(Route::dense, kRows, 64), {slice});
  const Matrix<float> x = gaussian(3, 64, 1);
  const Matrix<double> expected = exact_product(x, numbers(0, kRows, 32, 64));
  EXPECT_LE(relative_l2(product(*backend_, *linear, x).view(), expected.view()), 1e-6);

  slice.first_col = 16;
  test::expect_error(
      Error::unsupported, [&] { load(planned(Route::dense, kRows, 64), {slice}); },
      AllOf(StartsWith("layer.proj: columns 16 to 80 of a cut a scale's 32 inputs"), HasSubstr("--tp")));
}

TEST_F(LoadFp4, BadScalesNameTheirTensor) {
  add("a");
  file_.add_bytes("bare", DType::i8, kRows, kCols / 2, codes(kRows * kCols / 2));
  file_.add_bytes("short", DType::i8, kRows, kCols / 2, codes(kRows * kCols / 2));
  file_.add_bytes("short_scale_inv", DType::f8_e8m0, kRows, 2, scales(kRows * 2));
  file_.add("wide", DType::f16, gaussian(kRows, kCols, 1));
  std::vector<std::byte> with_nan = scales(kRows * kCols / 32);
  with_nan[7] = std::byte{0xff};
  file_.add_bytes("nan", DType::i8, kRows, kCols / 2, codes(kRows * kCols / 2));
  file_.add_bytes("nan_scale_inv", DType::f8_e8m0, kRows, kCols / 32, with_nan);
  open();
  const auto expect = [&](const std::string& name, Error::Kind kind, const auto& message) {
    test::expect_error(
        kind, [&] { load(planned(Route::dense, kRows, kCols), {part(name)}); }, message);
  };
  expect("bare", Error::unsupported, StartsWith("bare: I8 without scales"));
  expect("short", Error::bad_file, AllOf(StartsWith("short_scale_inv: shape [12, 2]"), HasSubstr("[12, 3]")));
  expect("nan", Error::bad_value, StartsWith("nan_scale_inv: row 2 column 1 is not a finite number"));
  test::expect_error(
      Error::unsupported,
      [&] {
        load(planned(Route::dense, 2 * kRows, kCols), {part("a"), file_.part("wide")});
      },
      HasSubstr("some of its tensors are FP4 and some are not"));
}

class LoadGroups : public test::LoadFixture {};

TEST_F(LoadGroups, EachGroupMultipliesItsOwnColumnsOnEitherRoute) {
  constexpr std::int64_t kGroups = 3;
  constexpr std::int64_t kN = 32;
  constexpr std::int64_t kK = 48;
  const Matrix<float> weight = gaussian(kGroups * kN, kK, 1);
  file_.add("a", DType::f16, weight);
  open();
  const Matrix<float> x = gaussian(5, kGroups * kK, 2);
  for (const Route route : {Route::dense, Route::qpn8}) {
    PlannedProjection plan = planned(route, kN, kK);
    plan.tensor.groups = kGroups;
    plan.schedule = {.split_k = 1, .accumulator_chains = 2};
    const auto linear = load(plan, {file_.part("a")});
    EXPECT_EQ(linear->groups(), kGroups);
    EXPECT_EQ(linear->k(), kGroups * kK);
    EXPECT_EQ(linear->n(), kGroups * kN);
    EXPECT_EQ(products(*linear), kGroups * kN * kK);
    const Matrix<float> y = product(*backend_, *linear, x);
    for (std::int64_t group = 0; group < kGroups; ++group) {
      WeightPart rows = file_.part("a");
      rows.first_row = group * kN;
      rows.rows = kN;
      PlannedProjection one = plan;
      one.tensor.groups = 1;
      Matrix<float> inputs(5, kK);
      for (std::int64_t t = 0; t < 5; ++t) {
        for (std::int64_t i = 0; i < kK; ++i) inputs(t, i) = x(t, group * kK + i);
      }
      const Matrix<float> alone = product(*backend_, *load(one, {rows}), inputs);
      EXPECT_TRUE(test::same_bits<float>(alone.view(), y.view().col_range(group * kN, kN)));
    }
  }
}

TEST(Operators, ABackendThatLacksSomeNamesThem) {
  class Bare : public ForwardingBackend {
   public:
    using ForwardingBackend::ForwardingBackend;
    bool has(Operator op) const override { return op == Operator::add; }
  };
  const Bare bare(make_cpu_backend({.threads = 1}));
  const std::vector<Operator> needed = {Operator::add, Operator::pool_rows, Operator::latent_attention};
  test::expect_error(
      Error::missing_capability, [&] { require_operators(bare, needed, "config.json"); },
      AllOf(StartsWith("config.json on cpu-"), HasSubstr("pool rows, latent attention; --device cpu has them")));
  EXPECT_NO_THROW(require_operators(*make_cpu_backend({.threads = 1}), needed, "config.json"));
}

}  // namespace
}  // namespace qpn8
