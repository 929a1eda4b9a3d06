#include "kernels/cpu/gated_streams.hpp"

#include <gtest/gtest.h>

#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;
using test::Strided;

constexpr std::int64_t kStreamRows = 5;
constexpr std::int64_t kStreamWidth = 601;  // more than a task takes, and no whole vectors

TEST(GatedStreams, AreTheFormulasForAnyNumberOfStreams) {
  for_each_isa([] {
    for (const std::int64_t streams : {1, 2, 4}) {
      const std::int64_t wide = streams * kStreamWidth;
      const Matrix<float> h = gaussian(kStreamRows, wide, 1, 3.0F);
      const Matrix<float> weight = gaussian(1, wide, 2);
      const Matrix<float> gates = gaussian(kStreamRows, wide, 3);
      const Matrix<float> injected = gaussian(kStreamRows, streams, 4, 3.0F);
      const Matrix<float> y = gaussian(kStreamRows, kStreamWidth, 5);
      Matrix<double> wide_expected(kStreamRows, wide);
      Matrix<double> expected(kStreamRows, kStreamWidth);
      ThreadTeam team(2);

      Matrix<float> out(kStreamRows, wide);
      normalise_streams_reference(h.view(), weight.view().row(0), streams, 1e-6F, wide_expected.view());
      normalise_streams(h.view(), weight.view().row(0), streams, 1e-6F, out.view(), team);
      EXPECT_LE(relative_l2(out.view(), wide_expected.view()), 1e-6) << streams;

      Matrix<float> x(kStreamRows, kStreamWidth);
      mix_streams_reference(h.view(), gates.view(), expected.view());
      mix_streams(h.view(), gates.view(), x.view(), team);
      EXPECT_LE(relative_l2(x.view(), expected.view()), 1e-6) << streams;

      Matrix<float> added = h;
      Strided strided(injected);
      inject_streams_reference(h.view(), injected.view(), y.view(), wide_expected.view());
      inject_streams(added.view(), strided.view(), y.view(), team);
      EXPECT_LE(relative_l2(added.view(), wide_expected.view()), 1e-6) << streams;

      gate_values_reference(h.view(), gates.view(), y.view(), wide_expected.view());
      gate_values(h.view(), gates.view(), y.view(), out.view(), team);
      EXPECT_LE(relative_l2(out.view(), wide_expected.view()), 1e-5) << streams;
    }
  });
}

TEST(GatedStreams, AKeyThatAgreesWithNothingOpensHalf) {
  const Matrix<float> keys(1, 8);
  const Matrix<float> queries = gaussian(1, 8, 1);
  const Matrix<float> value = gaussian(1, 4, 2);
  Matrix<float> out(1, 8);
  ThreadTeam team(1);
  gate_values(keys.view(), queries.view(), value.view(), out.view(), team);
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(out(0, i), 0.5F * value(0, i % 4));
}

TEST(GatedStreams, NormaliseInPlaceAsElsewhere) {
  const Matrix<float> weight = gaussian(1, 64, 2);
  Matrix<float> h = gaussian(3, 64, 1);
  Matrix<float> out(3, 64);
  ThreadTeam team(1);
  normalise_streams(h.view(), weight.view().row(0), 4, 1e-6F, out.view(), team);
  normalise_streams(h.view(), weight.view().row(0), 4, 1e-6F, h.view(), team);
  EXPECT_TRUE(same_bits<float>(h.view(), out.view()));
}

TEST(GatedStreams, ScaledSiluIsTheFormula) {
  for_each_isa([] {
    const Matrix<float> before = gaussian(4, 37, 1, 8.0F);
    Matrix<double> expected(4, 37);
    for (std::int64_t t = 0; t < 4; ++t) {
      for (std::int64_t i = 0; i < 37; ++i) {
        const double scaled = 0.25 * before(t, i);
        expected(t, i) = scaled / (1.0 + std::exp(-scaled));
      }
    }
    Strided x(before);
    ThreadTeam team(2);
    scaled_silu(x.view(), 0.25F, team);
    EXPECT_LE(relative_l2(x.view(), expected.view()), 1e-6);
  });
}

}  // namespace
}  // namespace qpn8::cpu
