#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// Reads every byte once, the members of the team a contiguous part each, as fast as plain loads go: the yardstick of
/// the kernels' bandwidth. Returns a checksum, so that the reads cannot be left out.
std::uint64_t read_all(std::span<const std::byte> memory, ThreadTeam& team);

/// Runs `rounds` rounds of independent FP32 multiply-adds in registers on every member and returns how many floating
/// point operations (two a multiply-add) that were: the yardstick of the GEMM. `sink` receives a value of the result.
double multiply_add_rounds(std::int64_t rounds, ThreadTeam& team, float& sink);

}  // namespace qpn8::cpu
