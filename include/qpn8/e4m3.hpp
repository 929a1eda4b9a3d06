#pragma once

#include <cstdint>

#include "qpn8/half.hpp"

namespace qpn8 {

/// FP8 E4M3 (the "fn" variant of the OCP 8-bit floating point specification): sign, 4 exponent bits of bias 7, 3
/// mantissa bits; no infinities; 0x7f and 0xff are NaN; largest finite value 448; subnormals are multiples of 2^-9.
inline constexpr float kE4M3Max = 448.0F;

inline constexpr bool is_nan_code(std::uint8_t code) { return (code & 0x7fU) == 0x7fU; }

/// The code's value; NaN for 0x7f and 0xff.
float decode_e4m3(std::uint8_t code);

/// The FP16 bits with value code / 256: sign<<8 | (code & 0x7f)<<7. Exact for the 254 finite codes, subnormals
/// included, because the exponent biases differ by 8; the missing 2^8 belongs into the scale.
inline constexpr Half decode_e4m3_over_256(std::uint8_t code) {
  return Half{static_cast<std::uint16_t>((code & 0x80U) << 8 | (code & 0x7fU) << 7)};
}

/// The nearest code, ties to the even mantissa. |value| > 448 saturates to +-448; the sign of zero is kept;
/// NaN gives 0x7f.
std::uint8_t encode_e4m3(float value);

/// E8M0: a byte e is the scale 2^(e - 127); 255 is NaN.
float decode_e8m0(std::uint8_t code);

}  // namespace qpn8
