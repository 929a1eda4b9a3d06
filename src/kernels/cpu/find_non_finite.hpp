#pragma once

#include <cstdint>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// out[t] = index of the first infinity or NaN of row t, or -1.
void find_non_finite(MatrixView<const float> x, std::span<std::int32_t> out, ThreadTeam& team);

void find_non_finite_reference(MatrixView<const float> x, std::span<std::int32_t> out);

}  // namespace qpn8::cpu
