#pragma once

#include <array>
#include <cstdint>

namespace qpn8 {

inline constexpr std::int64_t kFp4Group = 32;  ///< inputs that share a scale

/// The value of an E2M1 code (sign, two bits of exponent, one of mantissa); every one of the 16 is finite.
constexpr float decode_e2m1(std::uint8_t code) {
  constexpr std::array<float, 8> kMagnitudes = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const float magnitude = kMagnitudes[code & 7U];
  return (code & 8U) != 0 ? -magnitude : magnitude;
}

/// The code of input i of a row in which two share a byte, the even one in its low half.
constexpr std::uint8_t e2m1_at(const std::uint8_t* row, std::int64_t i) {
  return static_cast<std::uint8_t>(i % 2 == 0 ? row[i / 2] & 0x0fU : row[i / 2] >> 4U);
}

}  // namespace qpn8
