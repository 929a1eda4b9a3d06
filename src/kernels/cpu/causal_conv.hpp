#pragma once

#include <cstdint>

#include "kernels/cpu/row_store.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

inline constexpr std::int64_t kMostTaps = 16;

/// out[t][c] = silu(sum over j of weights[j][c] * x[p - dilation * (taps - 1 - j)][c]) for the row t at position p of
/// its sequence: a convolution over time, a channel by itself, that sees nothing of what follows. Positions before the
/// sequence are zeros. Then the last rows of x become the sequence's history.
///
/// weights [taps, channels], at most kMostTaps taps, summed in order; history F32, at least dilation * (taps - 1)
/// positions a sequence, a ring. A row's bits do not depend on how the tokens were spread over calls.
void causal_conv(MatrixView<const float> x, const RowPlaces& places, MatrixView<const float> weights,
                 std::int64_t dilation, const RowStore& history, MatrixView<float> out, ThreadTeam& team);

/// By its formula, in FP64, of one sequence from its beginning.
void causal_conv_reference(MatrixView<const float> x, MatrixView<const float> weights, std::int64_t dilation,
                           MatrixView<double> out);

}  // namespace qpn8::cpu
