#include <gtest/gtest.h>

#include "cuda/gpu_test.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using test::activations;
using test::floats_of;
using test::half_gaussian;
using test::planned;
using test::relative_l2;
using test::same_bits;
using test::WeightFile;

class CudaLinearTest : public test::GpuTest {
 protected:
  Matrix<float> multiply(const Linear& weight, const Matrix<float>& x, DType type) {
    const OwnedTensor in = activations(gpu(), x);
    const OwnedTensor out = gpu().allocate(type, x.rows(), weight.n());
    gpu().linear(weight, in.tensor, out.tensor);
    return floats_of(gpu(), out.tensor);
  }

  /// Results of any number of rows against FP64, and rows of up to eight against each other.
  void expect_product(const Linear& weight, const Matrix<float>& used, std::span<const float> bias, double tolerance,
                      const std::string& what) {
    const Matrix<float> x = half_gaussian(40, weight.k(), 3);
    const Matrix<double> expected = test::exact_product(x, used, bias);
    const auto rows_of = [&](std::int64_t count) {
      Matrix<float> first(count, x.cols());
      std::copy_n(x.values().begin(), first.values().size(), first.values().begin());
      return first;
    };
    const Matrix<float> eight = multiply(weight, rows_of(8), DType::f32);
    for (const std::int64_t rows : {1, 2, 5, 8, 9, 40}) {
      const Matrix<float> y = multiply(weight, rows_of(rows), DType::f32);
      EXPECT_LE(relative_l2(y.view(), expected.view().row_range(0, rows)), tolerance)
          << what << ", " << rows << " rows";
      const Matrix<float> halves = multiply(weight, rows_of(rows), DType::f16);
      EXPECT_LE(relative_l2(halves.view(), expected.view().row_range(0, rows)), test::kHalfTolerance)
          << what << ", " << rows << " rows of halves";
      if (rows > 8) continue;
      EXPECT_TRUE(same_bits<float>(y.view(), eight.view().row_range(0, rows))) << what << ", " << rows << " rows";
    }
  }
};

TEST_F(CudaLinearTest, DenseProductsAreTheFormulaForEveryShape) {
  for (const std::int64_t k : {1, 7, 8, 16, 40, 64, 100, 1024, 2056}) {
    for (const std::int64_t n : {1, 16, 33, 200}) {
      WeightFile file;
      const Matrix<float> w = half_gaussian(n, k, 5, 0.05F);
      file.add("w", DType::f16, w);
      const Checkpoint& checkpoint = file.open();
      const PlannedProjection plan = planned(Route::dense, n, k);
      std::vector<float> bias(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.125F * static_cast<float>(i % 9);
      for (const bool biased : {false, true}) {
        const LinearSource source = {&plan, &checkpoint, {file.part("w")}, biased ? bias : std::vector<float>()};
        const auto weight = gpu().load_linear(source);
        // Beyond eight rows the bias of FP16 results is rounded before the sum.
        expect_product(*weight, w, source.bias, 3e-6, "K=" + std::to_string(k) + " N=" + std::to_string(n));
      }
    }
  }
}

TEST_F(CudaLinearTest, PackedProductsAreThoseOfTheirCodesAndScales) {
  for (const std::int64_t k : {16, 32, 48, 256, 1040}) {
    for (const std::int64_t n : {32, 96, 160}) {
      WeightFile file;
      Matrix<float> w = half_gaussian(n, k, 7, 0.05F);
      file.add("w", DType::f16, w);
      const Checkpoint& checkpoint = file.open();
      const PlannedProjection plan = planned(Route::qpn8, n, k);
      const auto weight = gpu().load_linear({&plan, &checkpoint, {file.part("w")}, {}});
      ThreadTeam team(1);
      const RowSource rows = {RowSource::Type::f32, w.values().data(), n, k};
      const PackedWeight packed = pack_channelwise({&rows, 1}, k, team);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < k; ++j) w(i, j) = decode_e4m3(code_at(packed, i, j)) * scale_at(packed, i, j);
      }
      expect_product(*weight, w, {}, 3e-6, "K=" + std::to_string(k) + " N=" + std::to_string(n));
    }
  }
}

TEST_F(CudaLinearTest, BlockScaledProductsAreThoseOfTheCheckpointsCodes) {
  constexpr std::int64_t kN = 288;
  constexpr std::int64_t kK = 400;
  WeightFile file;
  std::vector<std::byte> codes(kN * kK);
  unsigned next = 1;
  for (std::byte& code : codes) code = static_cast<std::byte>(next = next * 29 % 126);
  Matrix<float> w(kN, kK);
  Matrix<float> scales(3, 4);
  for (std::size_t i = 0; i < scales.values().size(); ++i) scales.values()[i] = 1e-3F * static_cast<float>(i + 1);
  for (std::int64_t i = 0; i < kN; ++i) {
    for (std::int64_t j = 0; j < kK; ++j) {
      w(i, j) = decode_e4m3(std::to_integer<std::uint8_t>(codes[static_cast<std::size_t>(i * kK + j)])) *
                scales(i / 128, j / 128);
    }
  }
  file.add_bytes("w", DType::f8_e4m3, kN, kK, codes);
  file.add("w_scale_inv", DType::f32, scales);
  const Checkpoint& checkpoint = file.open();
  // Beyond eight rows a code times its scale is rounded to FP16.
  for (const Route route : {Route::qpn8, Route::dense}) {
    const PlannedProjection plan = planned(route, kN, kK);
    const auto weight = gpu().load_linear({&plan, &checkpoint, {file.part("w")}, {}});
    expect_product(*weight, w, {}, 4e-4, "block scales");
  }
}

TEST_F(CudaLinearTest, PaddedChannelsAreNeverWritten) {
  WeightFile file;
  const Matrix<float> w = half_gaussian(50, 64, 5);
  file.add("w", DType::f16, w);
  const Checkpoint& checkpoint = file.open();
  const PlannedProjection plan = planned(Route::qpn8, 50, 64, 64);
  const auto weight = gpu().load_linear({&plan, &checkpoint, {file.part("w")}, {}});
  EXPECT_EQ(weight->n(), 50);
  for (const std::int64_t rows : {3, 12}) {
    const OwnedTensor in = activations(gpu(), half_gaussian(rows, 64, 2));
    const OwnedTensor out = gpu().allocate(DType::f32, rows, 64);
    const Matrix<float> poison = test::gaussian(rows, 64, 9);
    gpu().write(out.tensor, std::as_bytes(poison.values()));
    gpu().linear(*weight, in.tensor, out.tensor.col_range(0, 50));
    const Matrix<float> y = floats_of(gpu(), out.tensor);
    EXPECT_TRUE(same_bits<float>(y.view().col_range(50, 14), poison.view().col_range(50, 14))) << rows;
  }
}

TEST_F(CudaLinearTest, AWeightBeyondHalfPrecisionIsRefusedByName) {
  WeightFile file;
  Matrix<float> w = half_gaussian(32, 64, 5);
  w(3, 9) = 70000.0F;
  file.add("w", DType::bf16, w);
  const Checkpoint& checkpoint = file.open();
  const PlannedProjection plan = planned(Route::dense, 32, 64);
  test::expect_error(
      Error::bad_value,
      [&] {
        gpu().load_linear({&plan, &checkpoint, {file.part("w")}, {}});
      },
      testing::HasSubstr("layer.proj: row 3 column 9"));
}

}  // namespace
}  // namespace qpn8
