#pragma once

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8 {

// silu(gate) * up in the two forms that are compared, and exactly; gate_up [rows, 2 I], gate columns first.

/// The fused form: gate and up stay the FP32 sums that the product left.
Matrix<float> fused_gate_up(const Matrix<float>& gate_up, ThreadTeam& team);

/// The form of a dense FP16 route: gate and up are rounded to FP16 on their way through memory.
Matrix<float> unfused_gate_up(Matrix<float> gate_up, ThreadTeam& team);

/// In FP64.
Matrix<double> exact_gate_up(const Matrix<double>& gate_up);

}  // namespace qpn8
