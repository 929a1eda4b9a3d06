#include "qpn8/e4m3.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace qpn8 {
namespace {

/// The 7 magnitude bits of the code nearest to `magnitude` (>= 0, not NaN), ties to even, saturating.
std::uint32_t encode_magnitude(float magnitude) {
  const float bounded = std::min(magnitude, kE4M3Max);
  if (bounded < 0x1p-6F) {
    // The code counts units of 2^-9: the last bit of 2^14 + x has that weight, so the addition itself rounds.
    constexpr float kAlign = 16384.0F;
    return std::bit_cast<std::uint32_t>(bounded + kAlign) - std::bit_cast<std::uint32_t>(kAlign);
  }
  // Round 20 mantissa bits off to nearest even and move the exponent bias from 127 to 7. A carry out of the mantissa is
  // the next exponent, which is right.
  const auto bits = std::bit_cast<std::uint32_t>(bounded);
  const std::uint32_t odd = bits >> 20 & 1U;
  return (bits + 0x7ffffU + odd - (std::uint32_t{127 - 7} << 23)) >> 20;
}

}  // namespace

float decode_e4m3(std::uint8_t code) {
  if (is_nan_code(code)) return std::numeric_limits<float>::quiet_NaN();
  return to_float(decode_e4m3_over_256(code)) * 256.0F;
}

std::uint8_t encode_e4m3(float value) {
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(value) >> 24 & 0x80U;
  if (std::isnan(value)) return 0x7f;
  return static_cast<std::uint8_t>(sign | encode_magnitude(std::fabs(value)));
}

float decode_e8m0(std::uint8_t code) {
  if (code == 0xff) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(code) - 127);
}

}  // namespace qpn8
