#include "kernels/cpu/fp4_linear.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "quant/e2m1.hpp"
#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;

struct Fp4Weight {
  Fp4Weight(std::int64_t n, std::int64_t k)
      : codes(static_cast<std::size_t>(n * k / 2)), scales(static_cast<std::size_t>(n * k / 32)), n_(n), k_(k) {
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(120 + i % 12);
  }
  Fp4WeightView view() const { return {codes.data(), scales.data(), n_, k_}; }

  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;

 private:
  std::int64_t n_;
  std::int64_t k_;
};

Matrix<float> multiply(const Fp4Weight& weight, MatrixView<const float> x, int threads) {
  ThreadTeam team(threads);
  Matrix<float> scratch(threads, x.cols);
  Matrix<float> y(x.rows, weight.view().n);
  fp4_linear(weight.view(), x, y.view(), scratch.view(), team);
  return y;
}

TEST(Fp4Linear, IsTheProductOfTheCodesForAnyShape) {
  for_each_isa([] {
    for (const auto& [n, k] : {std::pair(1, 32), std::pair(17, 96), std::pair(64, 512)}) {
      const Fp4Weight weight(n, k);
      for (const std::int64_t m : {1, 3, 20}) {
        const Matrix<float> x = gaussian(m, k, 1);
        Matrix<double> expected(m, n);
        fp4_linear_reference(weight.view(), x.view(), expected.view());
        const Matrix<float> y = multiply(weight, x.view(), 2);
        EXPECT_LE(relative_l2(y.view(), expected.view()), 1e-6) << n << " " << k << " " << m;
        for (std::int64_t t = 0; t < m; ++t) {
          EXPECT_TRUE(same_bits<float>(multiply(weight, x.view().row_range(t, 1), 1).view(), y.view().row_range(t, 1)));
        }
      }
    }
  });
}

TEST(Fp4Linear, WidensEveryCodeExactlyAtTheEndsOfTheScales) {
  for_each_isa([] {
    for (const std::uint8_t scale : {1, 127, 250}) {
      Fp4Weight weight(1, 32);
      for (std::uint8_t i = 0; i < 16; ++i) weight.codes[i] = static_cast<std::uint8_t>(i | (15 - i) << 4);
      weight.scales[0] = scale;
      for (std::int64_t input = 0; input < 32; ++input) {
        Matrix<float> x(1, 32);
        x(0, input) = 1.0F;
        const auto code = static_cast<std::uint8_t>(input % 2 == 0 ? input / 2 : 15 - input / 2);
        const float expected = std::ldexp(decode_e2m1(code), scale - 127);
        EXPECT_EQ(multiply(weight, x.view(), 1)(0, 0), expected) << int{scale} << " " << input;
      }
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
