#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/load_fixture.hpp"
#include "qpn8/error.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

using test::error_of;
using test::exact_product;
using test::gaussian;
using test::planned;
using test::product;
using test::relative_l2;
using test::same_bits;
using test::stacked;

class LoadPacked : public test::LoadFixture {
 protected:
  /// A tensor of codes with different block scales.
  void add_codes(const std::string& name, std::int64_t rows, std::int64_t cols, unsigned seed) {
    std::vector<std::byte> codes(static_cast<std::size_t>(rows * cols));
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>((i * 37 + seed) % 127);
    file_.add_bytes(name, DType::f8_e4m3, rows, cols, codes);
    Matrix<float> scales((rows + 127) / 128, (cols + 127) / 128);
    float next = 0.01F;
    for (float& scale : scales.values()) scale = next *= 1.7F;
    file_.add(name + "_scale_inv", DType::f32, scales);
  }
};

TEST_F(LoadPacked, StackedPartsOfAnyTypeAreQuantisedRowByRow) {
  const std::vector<Matrix<float>> parts = {gaussian(48, 64, 1), gaussian(16, 64, 2, 0.01F), gaussian(32, 64, 3)};
  const DType types[] = {DType::f32, DType::f16, DType::bf16};
  for (std::size_t i = 0; i < 3; ++i) file_.add("w" + std::to_string(i), types[i], parts[i]);
  open();
  const Matrix<float> bias = gaussian(1, 96, 7);
  const auto linear = load(planned(Route::qpn8, 96, 64), {file_.part("w0"), file_.part("w1"), file_.part("w2")},
                           {bias.values().begin(), bias.values().end()});
  EXPECT_EQ(linear->n(), 96);
  EXPECT_LT(linear->bytes(), 96 * 64 * 3 / 2);
  for (const std::int64_t rows : {1, 8, 9, 40}) {
    const Matrix<float> x = gaussian(rows, 64, 4);
    const Matrix<float> y = product(*backend_, *linear, x);
    const Matrix<double> expected = exact_product(x, stacked(parts), bias.values());
    // Three mantissa bits: an error of about 2^-4 / sqrt(3) a weight, the same for the part of small weights.
    EXPECT_LE(relative_l2(y.view(), expected.view()), 0.03) << rows;
    const auto small = [](auto view) { return view.col_range(48, 16); };
    Matrix<double> without_bias = exact_product(x, parts[1]);
    Matrix<float> difference(rows, 16);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t n = 0; n < 16; ++n)
        difference(i, n) = small(y.view()).row(i)[static_cast<std::size_t>(n)] - bias(0, 48 + n);
    }
    EXPECT_LE(relative_l2(difference.view(), without_bias.view()), 0.05) << rows;
  }
}

TEST_F(LoadPacked, PaddedChannelsAreSlicedOff) {
  file_.add("w", DType::f16, gaussian(50, 32, 1));
  add_codes("codes", 50, 160, 5);
  open();
  const auto padded = load(planned(Route::qpn8, 50, 32, 64), {file_.part("w")});
  EXPECT_EQ(padded->n(), 50);
  const auto dense = load(planned(Route::dense, 50, 32), {file_.part("w")});
  const auto padded_codes = load(planned(Route::qpn8, 50, 160, 96), {file_.part("codes")});
  const auto dense_codes = load(planned(Route::dense, 50, 160), {file_.part("codes")});
  for (const std::int64_t rows : {1, 3, 20}) {
    const Matrix<float> x = gaussian(rows, 32, 2);
    EXPECT_LE(relative_l2(product(*backend_, *padded, x).view(), product(*backend_, *dense, x).view()), 0.05);
    const Matrix<float> wide = gaussian(rows, 160, 2);
    EXPECT_LE(
        relative_l2(product(*backend_, *padded_codes, wide).view(), product(*backend_, *dense_codes, wide).view()),
        1e-6);
  }
}

TEST_F(LoadPacked, BlockScaledCodesGiveTheDenseProductWhereverAShardBegins) {
  add_codes("a", 400, 512, 1);
  add_codes("b", 80, 512, 2);
  open();
  for (const std::int64_t first_row : {0, 128, 48}) {
    for (const std::int64_t first_col : {0, 128, 80}) {
      WeightPart a = file_.part("a");
      a.first_row = first_row;
      a.rows = 112;
      WeightPart b = file_.part("b");
      b.rows = 80;
      a.first_col = b.first_col = first_col;
      a.cols = b.cols = 256;
      const auto packed = load(planned(Route::qpn8, 192, 256), {a, b});
      const auto dense = load(planned(Route::dense, 192, 256), {a, b});
      for (const std::int64_t rows : {1, 8, 24}) {
        const Matrix<float> x = gaussian(rows, 256, 3);
        EXPECT_LE(relative_l2(product(*backend_, *packed, x).view(), product(*backend_, *dense, x).view()), 1e-6)
            << first_row << " " << first_col << " rows " << rows;
      }
    }
  }
}

TEST_F(LoadPacked, BadValuesAreNamedByTensor) {
  Matrix<float> nan = gaussian(32, 32, 1);
  nan(5, 6) = NAN;
  file_.add("good", DType::f16, gaussian(32, 32, 2));
  file_.add("nan", DType::f16, nan);
  add_codes("codes", 32, 32, 1);
  file_.add_bytes("nan_codes", DType::f8_e4m3, 32, 32, std::vector<std::byte>(1024, std::byte{0xff}));
  file_.add("nan_codes_scale_inv", DType::f32, gaussian(1, 1, 1));
  file_.add_bytes("zero_scale", DType::f8_e4m3, 32, 32, std::vector<std::byte>(1024));
  file_.add("zero_scale_scale_inv", DType::f32, Matrix<float>(1, 1));
  file_.add_bytes("huge_scale", DType::f8_e4m3, 32, 32, std::vector<std::byte>(1024));
  Matrix<float> huge(1, 1);
  huge(0, 0) = 1e36F;
  file_.add("huge_scale_scale_inv", DType::f32, huge);
  file_.add_bytes("wide_scale", DType::f8_e4m3, 32, 32, std::vector<std::byte>(1024));
  file_.add("wide_scale_scale_inv", DType::f32, gaussian(1, 2, 1));
  open();
  const auto refusal = [&](const std::string& name) {
    return error_of([&] { load(planned(Route::qpn8, 64, 32), {file_.part("codes"), file_.part(name)}); });
  };
  EXPECT_EQ(error_of([&] {
              load(planned(Route::qpn8, 64, 32), {file_.part("good"), file_.part("nan")});
            }),
            "nan: row 5 column 6 is not a finite number");
  EXPECT_EQ(refusal("good"),
            "layer.proj: some of its tensors are F8_E4M3 and some are not; one kind is needed (or --qpn8 off)");
  EXPECT_THAT(refusal("zero_scale"), testing::HasSubstr("zero_scale_scale_inv: scale 0 is 0"));
  EXPECT_THAT(refusal("huge_scale"), testing::HasSubstr("huge_scale_scale_inv: scale 0 is 1e+36; 448 times a scale"));
  EXPECT_EQ(refusal("wide_scale"),
            "wide_scale_scale_inv: shape [1, 2], one scale a block of 128 x 128 of wide_scale is [1, 1]");
}

TEST_F(LoadPacked, NanCodesAreNamedByTensor) {
  std::vector<std::byte> codes(1024);
  codes[70] = std::byte{0x7f};
  file_.add_bytes("w", DType::f8_e4m3, 32, 32, codes);
  file_.add_bytes("w_scale_inv", DType::f8_e8m0, 1, 1, {std::byte{127}});
  open();
  for (const Route route : {Route::dense, Route::qpn8}) {
    EXPECT_EQ(error_of([&] { load(planned(route, 32, 32), {file_.part("w")}); }),
              "w: row 2 column 6 is not a finite number");
  }
}

TEST_F(LoadPacked, AShapeThatCannotBePackedIsRefusedNamingTheProjection) {
  file_.add("w", DType::f16, gaussian(33, 32, 2));
  open();
  EXPECT_THAT(error_of([&] { load(planned(Route::qpn8, 33, 32), {file_.part("w")}); }),
              testing::StartsWith("layer.proj: K=32 N=33: N is not a multiple of 32"));
}

TEST_F(LoadPacked, OneTwoAndThreeThreadsLoadAndMultiplyToTheSameBits) {
  file_.add("w", DType::bf16, gaussian(96, 128, 2));
  open();
  const PlannedProjection plan = planned(Route::qpn8, 96, 128);
  const Matrix<float> x = gaussian(20, 128, 3);
  Matrix<float> first;
  for (const int threads : {1, 2, 3}) {
    const auto backend = make_cpu_backend({.threads = threads});
    const auto linear =
        backend->load_linear({.plan = &plan, .checkpoint = checkpoint_, .parts = {file_.part("w")}, .bias = {}});
    const Matrix<float> y = product(*backend, *linear, x);
    if (threads == 1) first = y;
    EXPECT_TRUE(same_bits<float>(first.view(), y.view())) << threads;
  }
}

}  // namespace
}  // namespace qpn8
