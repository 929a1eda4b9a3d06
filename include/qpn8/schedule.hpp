#pragma once

#include <cstdint>
#include <string>

namespace qpn8 {

/// How one kernel walks one matrix. A schedule changes the order of a sum, hence its last bits, but never with the
/// number of rows or threads: the same schedule gives the same bits.
struct Schedule {
  int split_k = 1;             ///< parts of k that are summed apart and reduced in order; (k / 16) % split_k == 0
  int accumulator_chains = 1;  ///< independent partial sums within a part; 1, 2 or 4
  bool prefetch = false;       ///< ask for the next codes ahead of their use

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Most rows (tokens in flight) the packed kernels serve; above it the weight is dequantised tile by tile.
inline constexpr int kMaxPackedRows = 8;

/// Bytes of the memory that those tiles share, unless a contract says otherwise.
inline constexpr std::int64_t kDefaultWorkspaceBytes = std::int64_t{16} << 20;

/// "(split 16, chains 2, no prefetch)"
std::string to_string(const Schedule& schedule);

/// Why the schedule cannot walk k inputs ("schedule (split 12, ...): K=320 has 20 groups of 16, ..."), or an empty
/// string.
std::string schedule_refusal(const Schedule& schedule, std::int64_t k);

}  // namespace qpn8
