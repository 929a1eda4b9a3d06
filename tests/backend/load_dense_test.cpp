#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/load_fixture.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

using test::error_of;
using test::exact_product;
using test::gaussian;
using test::on_device;
using test::on_host;
using test::planned;
using test::product;
using test::relative_l2;
using test::rounded;
using test::stacked;

class LoadDense : public test::LoadFixture {};

TEST_F(LoadDense, StackedPartsKeepTheirStoredPrecision) {
  const std::vector<Matrix<float>> parts = {gaussian(40, 50, 1), gaussian(7, 50, 2), gaussian(33, 50, 3)};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      file_.add(std::string(to_string(dtype)) + std::to_string(i), dtype, parts[i]);
    }
  }
  open();
  const Matrix<float> x = gaussian(11, 50, 4);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const std::string name(to_string(dtype));
    const auto linear =
        load(planned(Route::dense, 80, 50), {file_.part(name + "0"), file_.part(name + "1"), file_.part(name + "2")});
    EXPECT_EQ(linear->n(), 80);
    EXPECT_EQ(linear->k(), 50);
    EXPECT_EQ(linear->bytes(), 80 * 50 * static_cast<std::int64_t>(size_of(dtype)));
    const Matrix<double> expected = exact_product(x, rounded(stacked(parts), dtype));
    EXPECT_LE(relative_l2(product(*backend_, *linear, x).view(), expected.view()), 1e-6) << name;
  }
}

TEST_F(LoadDense, PartsOfDifferentTypesAreWidened) {
  const Matrix<float> a = gaussian(5, 24, 1);
  const Matrix<float> b = gaussian(6, 24, 2);
  file_.add("a", DType::f16, a);
  file_.add("b", DType::bf16, b);
  open();
  const auto linear = load(planned(Route::dense, 11, 24), {file_.part("a"), file_.part("b")});
  EXPECT_EQ(linear->bytes(), 11 * 24 * 4);
  const Matrix<float> x = gaussian(2, 24, 3);
  const Matrix<double> expected = exact_product(x, stacked({rounded(a, DType::f16), rounded(b, DType::bf16)}));
  EXPECT_LE(relative_l2(product(*backend_, *linear, x).view(), expected.view()), 1e-6);
}

TEST_F(LoadDense, ARectangleOfATensorIsAShard) {
  const Matrix<float> whole = gaussian(20, 30, 1);
  file_.add("w", DType::f32, whole);
  open();
  WeightPart part = file_.part("w");
  part.first_row = 3;
  part.rows = 9;
  part.first_col = 5;
  part.cols = 17;
  const auto linear = load(planned(Route::dense, 9, 17), {part});
  Matrix<float> shard(9, 17);
  for (std::int64_t n = 0; n < 9; ++n) {
    for (std::int64_t k = 0; k < 17; ++k) shard(n, k) = whole(3 + n, 5 + k);
  }
  const Matrix<float> x = gaussian(3, 17, 2);
  const Matrix<double> expected = exact_product(x, shard);
  EXPECT_LE(relative_l2(product(*backend_, *linear, x).view(), expected.view()), 1e-6);
}

TEST_F(LoadDense, TheBiasIsAddedToEveryRow) {
  const Matrix<float> w = gaussian(40, 16, 1);
  file_.add("w", DType::f32, w);
  open();
  const Matrix<float> bias = gaussian(1, 40, 2);
  const auto linear =
      load(planned(Route::dense, 40, 16), {file_.part("w")}, {bias.values().begin(), bias.values().end()});
  for (const std::int64_t rows : {1, 8, 20}) {
    const Matrix<float> x = gaussian(rows, 16, 3);
    const Matrix<double> expected = exact_product(x, w, bias.values());
    EXPECT_LE(relative_l2(product(*backend_, *linear, x).view(), expected.view()), 1e-6) << rows;
  }
}

TEST_F(LoadDense, BlockScaledFp8IsDecodedExactlyWhereverAShardBegins) {
  std::vector<std::byte> codes(200 * 300);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 37 % 127);
  const std::vector<std::byte> exponents = {std::byte{120}, std::byte{127}, std::byte{126},
                                            std::byte{121}, std::byte{125}, std::byte{128}};
  file_.add_bytes("w", DType::f8_e4m3, 200, 300, codes);
  file_.add_bytes("w_scale_inv", DType::f8_e8m0, 2, 3, exponents);
  open();
  WeightPart part = file_.part("w");
  part.first_row = 100;
  part.rows = 60;
  part.first_col = 70;
  part.cols = 200;
  const auto linear = load(planned(Route::dense, 60, 200), {part});
  EXPECT_EQ(linear->bytes(), 60 * 200 * 4);
  // One-hot inputs: an output is one weight.
  Matrix<float> x(200, 200);
  for (std::int64_t k = 0; k < 200; ++k) x(k, k) = 1.0F;
  const Matrix<float> columns = product(*backend_, *linear, x);
  for (std::int64_t n = 0; n < 60; ++n) {
    for (std::int64_t k = 0; k < 200; ++k) {
      const auto row = static_cast<std::size_t>(100 + n);
      const auto col = static_cast<std::size_t>(70 + k);
      const float scale = std::ldexp(1.0F, std::to_integer<int>(exponents[row / 128 * 3 + col / 128]) - 127);
      ASSERT_EQ(columns(k, n), decode_e4m3(std::to_integer<std::uint8_t>(codes[row * 300 + col])) * scale);
    }
  }
}

TEST_F(LoadDense, AValueThatIsNotFiniteIsNamed) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Matrix<float> w = gaussian(30, 20, 1);
    w(17, 4) = -INFINITY;
    file_.add(std::string(to_string(dtype)), dtype, w);
  }
  open();
  for (const std::string name : {"F32", "F16", "BF16"}) {
    std::optional<Error::Kind> kind;
    EXPECT_EQ(error_of([&] { load(planned(Route::dense, 30, 20), {file_.part(name)}); }, &kind),
              name + ": row 17 column 4 is not a finite number");
    EXPECT_EQ(kind, Error::bad_value);
  }
}

TEST_F(LoadDense, ABiasThatIsNotFiniteIsNamed) {
  file_.add("w", DType::f32, gaussian(3, 8, 1));
  open();
  EXPECT_EQ(error_of([&] {
              load(planned(Route::dense, 3, 8), {file_.part("w")}, {0.0F, NAN, 0.0F});
            }),
            "layer.proj: value 1 of its bias is not a finite number");
}

TEST_F(LoadDense, ShapesThatAreNotThePlannedOnesAreRefused) {
  file_.add("w", DType::f32, gaussian(3, 8, 1));
  open();
  EXPECT_EQ(error_of([&] { load(planned(Route::dense, 3, 9), {file_.part("w")}); }), "w: 8 inputs, layer.proj needs 9");
  EXPECT_EQ(error_of([&] { load(planned(Route::dense, 4, 8), {file_.part("w")}); }),
            "layer.proj: its tensors have 3 rows together, 4 are needed");
}

TEST_F(LoadDense, TypesThatAreNoWeightsAreRefused) {
  file_.add_bytes("ids", DType::i64, 2, 8, std::vector<std::byte>(128));
  file_.add_bytes("bare", DType::f8_e4m3, 2, 8, std::vector<std::byte>(16));
  open();
  EXPECT_EQ(error_of([&] { load(planned(Route::dense, 2, 8), {file_.part("ids")}); }),
            "ids: a weight of type I64; F32, F16, BF16 or F8_E4M3 is needed");
  EXPECT_EQ(error_of([&] { load(planned(Route::dense, 2, 8), {file_.part("bare")}); }),
            "bare: F8_E4M3 without block scales; \"bare_scale_inv\" is needed");
}

TEST_F(LoadDense, ATableIsASharedHeadToo) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    file_.add(std::string(to_string(dtype)), dtype, gaussian(70, 24, 1));
  }
  open();
  const Matrix<float> x = gaussian(3, 24, 2);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const OwnedTensor table = backend_->load_table(*checkpoint_, checkpoint_->tensor(to_string(dtype)));
    EXPECT_EQ(table.tensor.dtype, dtype);
    const auto head = backend_->share_linear(table.tensor);
    const Matrix<double> expected = exact_product(x, rounded(gaussian(70, 24, 1), dtype));
    EXPECT_LE(relative_l2(product(*backend_, *head, x).view(), expected.view()), 1e-6);

    const Matrix<std::int32_t> ids = [] {
      Matrix<std::int32_t> values(2, 1);
      values(0, 0) = 69;
      return values;
    }();
    const OwnedTensor id_tensor = on_device(*backend_, DType::i32, ids);
    const OwnedTensor out = backend_->allocate(DType::f32, 2, 24);
    backend_->embed(table.tensor, id_tensor.tensor, out.tensor);
    const Matrix<float> rows = on_host<float>(*backend_, out.tensor);
    const Matrix<float> values = rounded(gaussian(70, 24, 1), dtype);
    for (std::int64_t i = 0; i < 24; ++i) {
      EXPECT_EQ(rows(0, i), values(69, i));
      EXPECT_EQ(rows(1, i), values(0, i));
    }
  }
}

TEST_F(LoadDense, ATableThatCannotBeReadIsRefused) {
  Matrix<float> bad = gaussian(5, 8, 1);
  bad(2, 3) = NAN;
  file_.add("nan", DType::bf16, bad);
  file_.add_bytes("codes", DType::f8_e4m3, 2, 8, std::vector<std::byte>(16));
  open();
  EXPECT_EQ(error_of([&] { backend_->load_table(*checkpoint_, checkpoint_->tensor("nan")); }),
            "nan: row 2 column 3 is not a finite number");
  EXPECT_EQ(error_of([&] { backend_->load_table(*checkpoint_, checkpoint_->tensor("codes")); }),
            "codes: a table of type F8_E4M3; F32, F16 or BF16 is needed");
}

}  // namespace
}  // namespace qpn8
