#include "qpn8/half.hpp"

namespace qpn8 {

float to_float(Half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = value.bits >> 10 & 0x1fU;
  const std::uint32_t mantissa = value.bits & 0x3ffU;
  if (exponent == 0) {
    // Subnormal: mantissa * 2^-24, exact in binary32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide_exponent = exponent == 0x1fU ? 0xffU : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide_exponent << 23 | mantissa << 13);
}

Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return Half{static_cast<std::uint16_t>(sign | 0x7e00U)};
  // 65520 is the midpoint between the largest finite binary16 and the next power of two; it rounds to infinity.
  if (magnitude >= 0x477ff000U) return Half{static_cast<std::uint16_t>(sign | 0x7c00U)};
  if (magnitude < 0x38800000U) {
    // Below 2^-14 the result is a multiple of 2^-24: adding 0.5 aligns that unit with the last bit of the sum, and the
    // addition itself rounds to nearest even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    return Half{static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000U))};
  }
  const std::uint32_t odd = magnitude >> 13 & 1U;
  const std::uint32_t rounded = magnitude - (std::uint32_t{127 - 15} << 23) + 0xfffU + odd;
  return Half{static_cast<std::uint16_t>(sign | rounded >> 13)};
}

BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return BFloat16{static_cast<std::uint16_t>(bits >> 16 | 0x40U)};
  const std::uint32_t odd = bits >> 16 & 1U;
  return BFloat16{static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16)};
}

}  // namespace qpn8
