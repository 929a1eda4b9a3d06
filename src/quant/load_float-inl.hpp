// Loading stored numbers as FP32; included once for every instruction set (see hwy/foreach_target.h), hence the toggled
// include guard.

#if defined(QPN8_QUANT_LOAD_FLOAT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef QPN8_QUANT_LOAD_FLOAT_INL_HPP
#undef QPN8_QUANT_LOAD_FLOAT_INL_HPP
#else
#define QPN8_QUANT_LOAD_FLOAT_INL_HPP
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "qpn8/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Lanes(d) elements from `from`, as FP32; exact.
template <class D>
HWY_INLINE hn::Vec<D> load_as_float(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load_as_float(D d, const Half* from) {
#if HWY_TARGET == HWY_EMU128
  // Highway's conversion in plain C++ does not know infinities and NaN.
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = to_float(from[i]);
  return hn::Load(d, lanes);
#else
  const hn::Rebind<hwy::float16_t, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(from)));
#endif
}

template <class D>
HWY_INLINE hn::Vec<D> load_as_float(D d, const BFloat16* from) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::Rebind<std::uint32_t, D> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

inline float scalar_as_float(float value) { return value; }
inline float scalar_as_float(Half value) { return to_float(value); }
inline float scalar_as_float(BFloat16 value) { return to_float(value); }

}  // namespace qpn8::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QPN8_QUANT_LOAD_FLOAT_INL_HPP
