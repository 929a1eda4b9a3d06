#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/ab_summary.hpp"

namespace qpn8 {

/// Set before the run. Fractions, like the rates they bound: 0.02 is two points.
struct VerdictLimits {
  double margin = 0.02;      ///< the loss of accuracy that would still be accepted
  double rate_bound = 0.02;  ///< the rise of the rate of invalid, truncated or repetitive outputs that would be
};

enum class Quality : std::uint8_t { non_inferior, inferior, undecided };
enum class Speed : std::uint8_t { faster, slower, same };

std::string_view to_string(Quality quality);
std::string_view to_string(Speed speed);

struct Verdict {
  Quality quality = Quality::undecided;
  Speed speed = Speed::same;
  std::string recommendation;        ///< one sentence
  std::vector<std::string> reasons;  ///< one sentence each, what decided first
};

/// Decides on B.
///
/// inferior      the interval of the accuracy difference lies below -margin, or that of a rate's rise above its bound
/// undecided     the interval reaches below -margin, a rate rises above its bound by estimate alone, or the items
///               have no expected answers
/// non-inferior  otherwise
/// faster, slower  the interval of the decode ratio lies wholly beyond what the A/A arm shows between equal arms
///
/// Token hashes, divergence positions, single flips and the McNemar p value are reported and decide nothing.
Verdict judge(const AbSummary& summary, const VerdictLimits& limits);

/// Whether a route that was measured so is on by default: a measured speed-up is, unless quality regresses beyond the
/// margin or a bound. What only lacks items to show that it is as good stays on, with its opt-out
/// (docs/decisions/0003-online-default-on.md).
bool on_by_default(const Verdict& verdict);

}  // namespace qpn8
