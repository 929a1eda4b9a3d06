#pragma once

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// out = silu(gate) * up with silu(z) = z / (1 + e^-z): gate_up [rows, 2 I], gate columns first; out [rows, I]. The
/// sigmoid is within 4 ulp.
void swiglu(MatrixView<const float> gate_up, MatrixView<float> out, ThreadTeam& team);

/// By its formula, in FP64.
void swiglu_reference(MatrixView<const float> gate_up, MatrixView<double> out);

}  // namespace qpn8::cpu
