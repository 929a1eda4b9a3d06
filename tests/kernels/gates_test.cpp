#include "kernels/cpu/gates.hpp"

#include <gtest/gtest.h>

#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::Strided;

constexpr std::int64_t kGateRows = 7;
constexpr std::int64_t kGateCols = 60;

TEST(Gates, MultiplyByTheirSigmoid) {
  for_each_isa([] {
    Matrix<float> x = gaussian(kGateRows, kGateCols, 1);
    const Matrix<float> values = gaussian(kGateRows, kGateCols, 2, 20.0F);
    Matrix<double> expected(kGateRows, kGateCols);
    multiply_by_gate_reference(x.view(), values.view(), expected.view());
    Strided gate(values);
    ThreadTeam team(2);
    multiply_by_gate(x.view(), gate.view(), team);
    EXPECT_LE(relative_l2(x.view(), expected.view()), 1e-6);
  });
}

TEST(Gates, AddARowByItsOwnGate) {
  for_each_isa([] {
    Matrix<float> x = gaussian(kGateRows, kGateCols, 1);
    const Matrix<float> delta = gaussian(kGateRows, kGateCols, 2);
    const Matrix<float> gate = gaussian(kGateRows, 1, 3, 3.0F);
    Matrix<double> expected(kGateRows, kGateCols);
    add_gated_rows_reference(x.view(), delta.view(), gate.view(), expected.view());
    ThreadTeam team(2);
    add_gated_rows(x.view(), delta.view(), gate.view(), team);
    EXPECT_LE(relative_l2(x.view(), expected.view()), 1e-6);
  });
}

TEST(Gates, NormaliseEachRunAndOpenIt) {
  for_each_isa([] {
    for (const Gate kind : {Gate::sigmoid, Gate::silu}) {
      for (const std::int64_t width : {60, 20, 3}) {
        Matrix<float> x = gaussian(kGateRows, kGateCols, 1, 4.0F);
        const Matrix<float> weight = gaussian(1, width, 2);
        const Matrix<float> gate = gaussian(kGateRows, kGateCols, 3);
        Matrix<double> expected(kGateRows, kGateCols);
        gated_rms_norm_reference(x.view(), weight.view().row(0), 1e-6F, gate.view(), kind, expected.view());
        ThreadTeam team(2);
        gated_rms_norm(x.view(), weight.view().row(0), 1e-6F, gate.view(), kind, team);
        EXPECT_LE(relative_l2(x.view(), expected.view()), 1e-6) << width;
      }
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
