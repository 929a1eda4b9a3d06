#pragma once

#include <cstdint>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// What a gate goes through before it multiplies.
enum class Gate : std::uint8_t { sigmoid, silu };

/// In place: x *= sigmoid(gate).
void multiply_by_gate(MatrixView<float> x, MatrixView<const float> gate, ThreadTeam& team);

/// x[t] += sigmoid(gate[t]) * delta[t]; gate [rows, 1].
void add_gated_rows(MatrixView<float> x, MatrixView<const float> delta, MatrixView<const float> gate, ThreadTeam& team);

/// In place: each run of weight.size() values of a row is normalised by itself (rms), multiplied by the weight and by
/// the gate's values at the same places.
void gated_rms_norm(MatrixView<float> x, std::span<const float> weight, float eps, MatrixView<const float> gate,
                    Gate kind, ThreadTeam& team);

/// All three by their formulas, in FP64, from what x was.
void multiply_by_gate_reference(MatrixView<const float> x, MatrixView<const float> gate, MatrixView<double> out);
void add_gated_rows_reference(MatrixView<const float> x, MatrixView<const float> delta, MatrixView<const float> gate,
                              MatrixView<double> out);
void gated_rms_norm_reference(MatrixView<const float> x, std::span<const float> weight, float eps,
                              MatrixView<const float> gate, Gate kind, MatrixView<double> out);

}  // namespace qpn8::cpu
