#include "qpn8/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "quant/e4m3_rounding.hpp"

namespace qpn8 {
namespace {

// The bits of |value|: they order as the magnitudes do, and what is not finite lies at or above those of infinity.
std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU; }
std::uint16_t magnitude_bits(Half value) { return value.bits & 0x7fffU; }
std::uint16_t magnitude_bits(BFloat16 value) { return value.bits & 0x7fffU; }

template <class T>
constexpr std::uint32_t kInfinityBits = 0x7f800000U;
template <>
constexpr std::uint32_t kInfinityBits<Half> = 0x7c00U;
template <>
constexpr std::uint32_t kInfinityBits<BFloat16> = 0x7f80U;

// Finite values to FP32 without a branch, so that the loops below become vector code.
float widen_finite(float value) { return value; }
float widen_finite(BFloat16 value) { return to_float(value); }
float widen_finite(Half value) {
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t normal = (magnitude << 13) + (std::uint32_t{127 - 15} << 23);
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  return std::bit_cast<float>(sign | (magnitude < 0x400U ? std::bit_cast<std::uint32_t>(subnormal) : normal));
}

template <class T>
[[noreturn]] void refuse_non_finite(std::span<const T> weight) {
  std::size_t index = 0;
  while (magnitude_bits(weight[index]) < kInfinityBits<T>) ++index;
  const bool nan = magnitude_bits(weight[index]) > kInfinityBits<T>;
  throw Error(Error::bad_value,
              fmt::format("element {} is {}; weights must be finite", index, nan ? "NaN" : "infinite"));
}

template <class T>
float largest_magnitude(std::span<const T> weight) {
  decltype(magnitude_bits(T{})) largest = 0;
  for (const T value : weight) largest = std::max(largest, magnitude_bits(value));
  if (largest >= kInfinityBits<T>) refuse_non_finite(weight);
  return widen_finite(std::bit_cast<T>(largest));
}

template <class T>
float quantize(std::span<const T> weight, std::span<std::uint8_t> codes) {
  check(weight.size() == codes.size(), "quantize_channel: as many codes as weights");
  const float amax = largest_magnitude(weight);
  const float scale = amax == 0.0F ? 1.0F : std::max(amax / kE4M3Max, std::numeric_limits<float>::min());
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const auto quotient = std::bit_cast<std::uint32_t>(widen_finite(weight[i]) / scale);
    const std::uint32_t magnitude = e4m3_magnitude(std::bit_cast<float>(quotient & 0x7fffffffU));
    codes[i] = static_cast<std::uint8_t>((quotient >> 24 & 0x80U) | magnitude);
  }
  return scale;
}

}  // namespace

float quantize_channel(std::span<const Half> weight, std::span<std::uint8_t> codes) { return quantize(weight, codes); }

float quantize_channel(std::span<const BFloat16> weight, std::span<std::uint8_t> codes) {
  return quantize(weight, codes);
}

float quantize_channel(std::span<const float> weight, std::span<std::uint8_t> codes) { return quantize(weight, codes); }

void check_scales(std::span<const float> scales) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (std::isfinite(scales[i]) && scales[i] > 0.0F) continue;
    throw Error(Error::bad_value, fmt::format("scale {} is {}; scales must be finite and positive", i, scales[i]));
  }
}

void check_codes(std::span<const std::uint8_t> codes) {
  const auto bad = std::find_if(codes.begin(), codes.end(), is_nan_code);
  if (bad == codes.end()) return;
  throw Error(Error::bad_value,
              fmt::format("code {} is 0x{:02x}, which is NaN; E4M3 codes must be finite", bad - codes.begin(), *bad));
}

}  // namespace qpn8
