#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace qpn8::cpu {

/// An integer that orders as the float does, with -0 equal to 0 and NaN above everything.
inline std::int32_t order_of(float value) {
  if (std::isnan(value)) return INT32_MAX;
  const auto bits = std::bit_cast<std::int32_t>(value + 0.0F);
  return bits < 0 ? INT32_MIN - bits : bits;
}

/// The ids.size() largest of value(0 .. count - 1) with their ids, in falling order: kept sorted while the values are
/// read once, which suits a few of some hundred. A value is inserted behind its equals, which gives ties to the lower
/// id.
template <class Value>
void select_largest(const Value& value, std::size_t count, std::span<std::int32_t> ids, std::span<float> chosen) {
  std::size_t held = 0;
  for (std::size_t e = 0; e < count; ++e) {
    const float candidate = value(e);
    const std::int32_t order = order_of(candidate);
    if (held == ids.size() && order <= order_of(chosen[held - 1])) continue;
    std::size_t place = held < ids.size() ? held++ : held - 1;
    for (; place > 0 && order_of(chosen[place - 1]) < order; --place) {
      ids[place] = ids[place - 1];
      chosen[place] = chosen[place - 1];
    }
    ids[place] = static_cast<std::int32_t>(e);
    chosen[place] = candidate;
  }
}

}  // namespace qpn8::cpu
