#pragma once

#include <cstdint>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

// A residual of n streams h [rows, n * d], stream by stream, that a block reads as a weighted sum and writes back to
// with weights of its own while the streams mix. All weights of a row depend on that row.

namespace qpn8::cpu {

inline constexpr std::int64_t kMostStreams = 16;

struct StreamRule {
  std::int64_t streams = 1;         ///< n, at most kMostStreams
  std::int64_t sinkhorn_steps = 1;  ///< at least 1: normalisations of the mixing matrix's columns
  float eps = 0.0F;                 ///< added to weights and to the sums that divide them
  float norm_eps = 0.0F;            ///< of the rms of a row of h
};

/// What a block's maps give for a row, from z = fn h [rows, (2 + n) n] or, for the last sum, [rows, n].
struct StreamMaps {
  MatrixView<const float> z;
  std::span<const float> base;   ///< as wide as z
  std::span<const float> scale;  ///< of the three parts, or the one
};

/// weights[t] = n of the sum that a block reads | n of its output in each stream | n x n, row j what stream j gives to
/// each; or the first n alone where z has no more:
///   first   sigmoid(z / rms(h) * scale + base) + eps
///   second  2 sigmoid(..)
///   third   softmax(..) of each row + eps, then divided by its columns' sums + eps, and alternately by its rows' and
///   its
///           columns' until the columns have been normalised sinkhorn_steps times
void stream_weights(MatrixView<const float> h, const StreamMaps& maps, const StreamRule& rule,
                    MatrixView<float> weights, ThreadTeam& team);

/// x[t] = sum over s of weights[t][s] * stream s of h[t].
void collapse_streams(MatrixView<const float> h, MatrixView<const float> weights, MatrixView<float> x,
                      ThreadTeam& team);

/// In place: stream k of h[t] becomes weights[t][n + k] * y[t] + sum over j of weights[t][2 n + j n + k] * stream j.
void expand_streams(MatrixView<float> h, MatrixView<const float> weights, MatrixView<const float> y, ThreadTeam& team);

/// All three by their formulas, in FP64. `h` of expand_streams_reference is the state before.
void stream_weights_reference(MatrixView<const float> h, const StreamMaps& maps, const StreamRule& rule,
                              MatrixView<double> weights);
void collapse_streams_reference(MatrixView<const float> h, MatrixView<const float> weights, MatrixView<double> x);
void expand_streams_reference(MatrixView<const float> h, MatrixView<const float> weights, MatrixView<const float> y,
                              MatrixView<double> out);

}  // namespace qpn8::cpu
