#pragma once

#include <algorithm>
#include <cstdint>

#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// Rows of `cols` elements that are worth a thread of their own: below about 16 K elements an element-wise operator
/// takes less time than handing it to another thread.
inline std::int64_t row_grain(std::int64_t cols) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, cols));
}

/// Members of a team that `tasks` of `cost` elements each are worth, at least one.
inline std::int64_t worthwhile_members(std::int64_t tasks, std::int64_t cost, int team_size) {
  return std::clamp<std::int64_t>(tasks / row_grain(cost), 1, team_size);
}

/// Calls body(member, begin, end) for a range of [0, count) on each of `members` of a team: for_ranges with a member's
/// number, by which a body finds memory of its own.
template <class Body>
void for_members(ThreadTeam& team, std::int64_t members, std::int64_t count, const Body& body) {
  if (members <= 1) return body(0, std::int64_t{0}, count);
  team.run([&](int member) {
    if (member < members) body(member, count * member / members, count * (member + 1) / members);
  });
}

}  // namespace qpn8::cpu
