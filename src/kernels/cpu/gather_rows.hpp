#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// out[i] = in[rows[i]]. Every index is in [0, in.rows). Works on bytes, so any type of element may be behind them.
void gather_rows(MatrixView<const std::byte> in, std::span<const std::int32_t> rows, MatrixView<std::byte> out,
                 ThreadTeam& team);

}  // namespace qpn8::cpu
