#include "route/role_pattern.hpp"

#include <cstddef>

namespace qpn8 {

// Only the last star is ever retried: what an earlier one covers can stay as short as it was found to be. So the cost
// is at most the product of the lengths, whatever the pattern.
bool role_matches(std::string_view pattern, std::string_view role) {
  std::size_t p = 0;
  std::size_t r = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (r < role.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = r;
    } else if (p < pattern.size() && pattern[p] == role[r]) {
      ++p;
      ++r;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      r = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace qpn8
