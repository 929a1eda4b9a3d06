#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "qpn8/e4m3.hpp"

namespace qpn8 {

/// The 7 magnitude bits of the code nearest to `magnitude` (>= 0, not NaN), ties to even, saturating.
///
/// Free of branches, so that a compiler can make vector code of a loop over it: packing a checkpoint is bound by this.
inline std::uint32_t e4m3_magnitude(float magnitude) {
  const float bounded = std::min(magnitude, kE4M3Max);
  // Normal codes: drop 20 mantissa bits rounding to nearest even and move the exponent bias from 127 to 7. A carry out
  // of the mantissa is the next exponent, which is right.
  const auto bits = std::bit_cast<std::uint32_t>(bounded);
  const std::uint32_t odd = bits >> 20 & 1U;
  const std::uint32_t normal = (bits + 0x7ffffU + odd - (std::uint32_t{127 - 7} << 23)) >> 20;
  // Below 2^-6 the code counts units of 2^-9: the last bit of 2^14 + x has that weight, so the addition itself rounds.
  constexpr float kAlign = 16384.0F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(bounded + kAlign) - std::bit_cast<std::uint32_t>(kAlign);
  return bounded < 0x1p-6F ? subnormal : normal;
}

}  // namespace qpn8
