#pragma once

#include <cstdint>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// An E2M1 weight [n, k] with an E8M0 scale for every row and 32 inputs; somebody else's memory, without gaps.
struct Fp4WeightView {
  const std::uint8_t* codes = nullptr;   ///< [n, k / 2], input 2 i in the low half of a byte
  const std::uint8_t* scales = nullptr;  ///< [n, k / 32], 2^(scale - 127); none is 255
  std::int64_t n = 0;
  std::int64_t k = 0;  ///< a multiple of 32
};

/// y = x W^T: x [m, k], y [m, n]. A row of the weight at a time is widened to FP32, which holds it exactly, and
/// multiplied with every row of x; row i of an m-row call equals the 1-row call bit for bit.
/// scratch: [team.size(), k].
void fp4_linear(const Fp4WeightView& weight, MatrixView<const float> x, MatrixView<float> y, MatrixView<float> scratch,
                ThreadTeam& team);

/// By its formula, in FP64.
void fp4_linear_reference(const Fp4WeightView& weight, MatrixView<const float> x, MatrixView<double> y);

}  // namespace qpn8::cpu
