#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace qpn8 {

/// Ends the process when qpn8 itself is at fault; bad input is an Error instead.
inline void check(bool holds, const char* promise, std::source_location where = std::source_location::current()) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "qpn8: internal error at %s:%u: %s\n", where.file_name(), where.line(), promise);
  std::abort();
}

}  // namespace qpn8
