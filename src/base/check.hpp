#pragma once

#include <cstdio>
#include <cstdlib>

namespace qpn8 {

/// Ends the process when qpn8 itself is at fault; bad input is an Error instead.
inline void check(bool holds, const char* promise, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "qpn8: internal error at %s:%d: %s\n", file, line, promise);
  std::abort();
}

}  // namespace qpn8
