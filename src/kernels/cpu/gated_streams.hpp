#pragma once

#include <cstdint>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

// A residual of n streams h [rows, n * d], stream by stream, that do not mix: a block reads a gated mean of the
// normalised streams and adds to each stream what it computes, by a gate of the stream. docs/qwen4_exp.md has the
// formulas.

namespace qpn8::cpu {

/// out[t] = h[t], each stream normalised by itself (rms) and multiplied by its part of the weight [n * d]; out may be
/// h.
void normalise_streams(MatrixView<const float> h, std::span<const float> weight, std::int64_t streams, float eps,
                       MatrixView<float> out, ThreadTeam& team);

/// In place: x = silu(factor * x).
void scaled_silu(MatrixView<float> x, float factor, ThreadTeam& team);

/// x[t] = the mean over streams of sigmoid(gates[t]) * normed[t], a value at a time; both [rows, n * d].
void mix_streams(MatrixView<const float> normed, MatrixView<const float> gates, MatrixView<float> x, ThreadTeam& team);

/// A run of one row's mean, on this thread: `normed` and `gates` point at the run in the first stream, the others lie
/// `width` values apart.
void mix_run(const float* normed, const float* gates, std::int64_t width, std::int64_t streams, std::span<float> x);

/// In place: stream s of h[t] += 2 sigmoid(gates[t][s] / n) * y[t]; gates [rows, n].
void inject_streams(MatrixView<float> h, MatrixView<const float> gates, MatrixView<const float> y, ThreadTeam& team);

/// For each stream s, out[t] = sigmoid(root(<keys[t], queries[t]> of that stream / sqrt(d))) * value[t], where root is
/// the square root of what is at least 1e-6 with the sign it had. keys and queries [rows, n * d], value [rows, d].
void gate_values(MatrixView<const float> keys, MatrixView<const float> queries, MatrixView<const float> value,
                 MatrixView<float> out, ThreadTeam& team);

/// By their formulas, in FP64; `h` of inject_streams_reference is the state before.
void normalise_streams_reference(MatrixView<const float> h, std::span<const float> weight, std::int64_t streams,
                                 float eps, MatrixView<double> out);
void mix_streams_reference(MatrixView<const float> normed, MatrixView<const float> gates, MatrixView<double> x);
void inject_streams_reference(MatrixView<const float> h, MatrixView<const float> gates, MatrixView<const float> y,
                              MatrixView<double> out);
void gate_values_reference(MatrixView<const float> keys, MatrixView<const float> queries, MatrixView<const float> value,
                           MatrixView<double> out);

}  // namespace qpn8::cpu
