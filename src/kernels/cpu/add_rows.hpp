#pragma once

#include <cstdint>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// y[t] += bias for every row.
void add_bias(std::span<const float> bias, MatrixView<float> y, ThreadTeam& team);

/// x += delta.
void add_rows(MatrixView<float> x, MatrixView<const float> delta, ThreadTeam& team);

/// out[rows[i]] += weights[i] * x[i]: the rows of one expert's result return to their tokens. `rows` are distinct.
void add_weighted_rows(MatrixView<const float> x, std::span<const std::int32_t> rows, std::span<const float> weights,
                       MatrixView<float> out, ThreadTeam& team);

}  // namespace qpn8::cpu
