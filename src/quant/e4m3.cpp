#include "qpn8/e4m3.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "quant/e4m3_rounding.hpp"

namespace qpn8 {

float decode_e4m3(std::uint8_t code) {
  if (is_nan_code(code)) return std::numeric_limits<float>::quiet_NaN();
  return to_float(decode_e4m3_over_256(code)) * 256.0F;
}

std::uint8_t encode_e4m3(float value) {
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(value) >> 24 & 0x80U;
  if (std::isnan(value)) return 0x7f;
  return static_cast<std::uint8_t>(sign | e4m3_magnitude(std::fabs(value)));
}

float decode_e8m0(std::uint8_t code) {
  if (code == 0xff) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(code) - 127);
}

}  // namespace qpn8
