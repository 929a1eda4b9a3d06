#pragma once

#include <bit>
#include <cstdint>

namespace qpn8 {

/// IEEE 754 binary16 as stored bits. Conversions are exact one way and round to nearest even the other.
struct Half {
  std::uint16_t bits = 0;
  friend bool operator==(Half, Half) = default;
};

/// bfloat16 as stored bits: the upper half of a binary32.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(BFloat16, BFloat16) = default;
};

/// Every binary16 value, infinities and NaN included, is a binary32 value.
float to_float(Half value);

/// Rounds to nearest even; overflow gives infinity, NaN stays NaN (quiet).
Half to_half(float value);

inline float to_float(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

/// Rounds to nearest even; NaN stays NaN (quiet).
BFloat16 to_bfloat16(float value);

}  // namespace qpn8
