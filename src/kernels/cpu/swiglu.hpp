#pragma once

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// out = silu(gate) * up with silu(z) = z / (1 + e^-z): gate_up [rows, 2 I], gate columns first; out [rows, I]. The
/// sigmoid is within 4 ulp. Before that a gate above `limit` becomes the limit, and so does an up beyond it on either
/// side; 0: no limit. NaN stays NaN.
void swiglu(MatrixView<const float> gate_up, MatrixView<float> out, ThreadTeam& team, float limit = 0.0F);

/// By its formula, in FP64.
void swiglu_reference(MatrixView<const float> gate_up, MatrixView<double> out, float limit = 0.0F);

}  // namespace qpn8::cpu
