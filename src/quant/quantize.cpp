#include "qpn8/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/quantize.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "hwy/highway.h"
#include "quant/load_float-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::simd::HWY_NAMESPACE {

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using IntTag = hn::Rebind<std::int32_t, FloatTag>;
using IntVec = hn::Vec<IntTag>;

/// The bits of the largest magnitude: they order as the magnitudes do, and what is not finite lies at or above those of
/// infinity.
template <class T>
std::int32_t largest_magnitude(const T* values, std::size_t count) {
  const FloatTag f;
  const IntTag i32;
  const std::size_t lanes = hn::Lanes(f);
  IntVec largest = hn::Zero(i32);
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    largest = hn::Max(largest, hn::BitCast(i32, hn::Abs(load_as_float(f, values + at))));
  }
  std::int32_t result = hn::GetLane(hn::MaxOfLanes(i32, largest));
  for (; at < count; ++at) {
    result = std::max(result, std::bit_cast<std::int32_t>(std::fabs(scalar_as_float(values[at]))));
  }
  return result;
}

/// encode_e4m3 of finite values, in the low byte of each lane.
HWY_INLINE IntVec encode(FloatVec value) {
  const FloatTag f;
  const IntTag i32;
  const FloatVec magnitude = hn::Min(hn::Abs(value), hn::Set(f, kE4M3Max));
  const IntVec bits = hn::BitCast(i32, magnitude);
  // Normal codes: round 20 mantissa bits off to nearest even and move the exponent bias from 127 to 7. A carry out of
  // the mantissa is the next exponent, which is right.
  const IntVec odd = hn::And(hn::ShiftRight<20>(bits), hn::Set(i32, 1));
  const IntVec normal = hn::ShiftRight<20>(hn::Add(hn::Add(bits, odd), hn::Set(i32, 0x7ffff - ((127 - 7) << 23))));
  // Below 2^-6 the code counts units of 2^-9: the last bit of 2^14 + x has that weight, so the addition itself rounds.
  const FloatVec align = hn::Set(f, 16384.0F);
  const IntVec subnormal = hn::Sub(hn::BitCast(i32, hn::Add(magnitude, align)), hn::BitCast(i32, align));
  const auto is_subnormal = hn::RebindMask(i32, hn::Lt(magnitude, hn::Set(f, 0x1p-6F)));
  const IntVec sign = hn::And(hn::ShiftRight<24>(hn::BitCast(i32, value)), hn::Set(i32, 0x80));
  return hn::Or(sign, hn::IfThenElse(is_subnormal, subnormal, normal));
}

template <class T>
void encode_scaled(const T* values, std::size_t count, float scale, std::uint8_t* codes) {
  const FloatTag f;
  const hn::Rebind<std::uint8_t, FloatTag> u8;
  const std::size_t lanes = hn::Lanes(f);
  const FloatVec divisor = hn::Set(f, scale);
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    const FloatVec quotient = hn::Div(load_as_float(f, values + at), divisor);
    hn::StoreU(hn::DemoteTo(u8, encode(quotient)), u8, codes + at);
  }
  for (; at < count; ++at) codes[at] = encode_e4m3(scalar_as_float(values[at]) / scale);
}

// HWY_EXPORT takes no template arguments, hence a name for each stored type.
std::int32_t largest_half(const Half* values, std::size_t count) { return largest_magnitude(values, count); }
std::int32_t largest_bfloat16(const BFloat16* values, std::size_t count) { return largest_magnitude(values, count); }
std::int32_t largest_float(const float* values, std::size_t count) { return largest_magnitude(values, count); }
void encode_half(const Half* values, std::size_t count, float scale, std::uint8_t* codes) {
  encode_scaled(values, count, scale, codes);
}
void encode_bfloat16(const BFloat16* values, std::size_t count, float scale, std::uint8_t* codes) {
  encode_scaled(values, count, scale, codes);
}
void encode_float(const float* values, std::size_t count, float scale, std::uint8_t* codes) {
  encode_scaled(values, count, scale, codes);
}

}  // namespace qpn8::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8 {
namespace simd {
namespace {
HWY_EXPORT(largest_half);
HWY_EXPORT(largest_bfloat16);
HWY_EXPORT(largest_float);
HWY_EXPORT(encode_half);
HWY_EXPORT(encode_bfloat16);
HWY_EXPORT(encode_float);
}  // namespace
}  // namespace simd

namespace {

float widen(float value) { return value; }
template <class T>
float widen(T value) {
  return to_float(value);
}

template <class T>
[[noreturn]] void refuse_non_finite(std::span<const T> weight) {
  const auto bad = std::find_if(weight.begin(), weight.end(), [](T value) { return !std::isfinite(widen(value)); });
  throw Error(Error::bad_value, fmt::format("element {} is {}; weights must be finite", bad - weight.begin(),
                                            std::isnan(widen(*bad)) ? "NaN" : "infinite"));
}

template <class T, class Largest, class Encode>
float quantize(std::span<const T> weight, std::span<std::uint8_t> codes, Largest largest, Encode encode) {
  check(weight.size() == codes.size(), "quantize_channel: as many codes as weights");
  const auto amax = std::bit_cast<float>(largest(weight.data(), weight.size()));
  if (!std::isfinite(amax)) refuse_non_finite(weight);
  const float scale = amax == 0.0F ? 1.0F : std::max(amax / kE4M3Max, std::numeric_limits<float>::min());
  encode(weight.data(), weight.size(), scale, codes.data());
  return scale;
}

}  // namespace

float quantize_channel(std::span<const Half> weight, std::span<std::uint8_t> codes) {
  using namespace simd;
  return quantize(weight, codes, HWY_DYNAMIC_DISPATCH(largest_half), HWY_DYNAMIC_DISPATCH(encode_half));
}

float quantize_channel(std::span<const BFloat16> weight, std::span<std::uint8_t> codes) {
  using namespace simd;
  return quantize(weight, codes, HWY_DYNAMIC_DISPATCH(largest_bfloat16), HWY_DYNAMIC_DISPATCH(encode_bfloat16));
}

float quantize_channel(std::span<const float> weight, std::span<std::uint8_t> codes) {
  using namespace simd;
  return quantize(weight, codes, HWY_DYNAMIC_DISPATCH(largest_float), HWY_DYNAMIC_DISPATCH(encode_float));
}

void check_scales(std::span<const float> scales) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (!(std::isfinite(scales[i]) && scales[i] > 0.0F)) {
      throw Error(Error::bad_value, fmt::format("scale {} is {}; scales must be finite and positive", i, scales[i]));
    }
    if (!std::isfinite(scales[i] * kE4M3Max)) {
      throw Error(Error::bad_value,
                  fmt::format("scale {} is {}; {} times a scale must be finite in FP32", i, scales[i], kE4M3Max));
    }
  }
}

void check_codes(std::span<const std::uint8_t> codes) {
  const auto bad = std::find_if(codes.begin(), codes.end(), is_nan_code);
  if (bad == codes.end()) return;
  throw Error(Error::bad_value,
              fmt::format("code {} is 0x{:02x}, which is NaN; E4M3 codes must be finite", bad - codes.begin(), *bad));
}

}  // namespace qpn8
#endif  // HWY_ONCE
