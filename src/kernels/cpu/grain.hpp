#pragma once

#include <algorithm>
#include <cstdint>

namespace qpn8::cpu {

/// Rows of `cols` elements that are worth a thread of their own: below about 16 K elements an element-wise operator
/// takes less time than handing it to another thread.
inline std::int64_t row_grain(std::int64_t cols) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, cols));
}

}  // namespace qpn8::cpu
