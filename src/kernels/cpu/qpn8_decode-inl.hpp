// Decoding packed E4M3 codes in registers; included once for every instruction set (see hwy/foreach_target.h), hence
// the toggled include guard.

#if defined(QPN8_KERNELS_CPU_QPN8_DECODE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef QPN8_KERNELS_CPU_QPN8_DECODE_INL_HPP
#undef QPN8_KERNELS_CPU_QPN8_DECODE_INL_HPP
#else
#define QPN8_KERNELS_CPU_QPN8_DECODE_INL_HPP
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using LaneTag = hn::Rebind<std::uint32_t, FloatTag>;
using LaneVec = hn::Vec<LaneTag>;

/// How far the decode may cut corners: `normal` holds for codes of magnitude 8 and above only.
enum class Codes { normal, any };

/// One code of every lane to FP32, as value / 256. The code's sign must be in bit 31 and its magnitude in bits 20..26;
/// the other bits are ignored.
///
/// The 4 exponent bits then sit at the low end of FP32's exponent field. OR-ing 112 into the field (its low 4 bits are
/// clear) moves the bias from 7 to 127 - 8: value / 256, exact, in one AND-OR. A zero or subnormal code comes out as
/// (1 + m/8) 2^-15 instead of m 2^-17; doubling and taking 2^-14 away repairs it, and only makes any other one larger.
template <Codes kCodes>
HWY_INLINE FloatVec decode_lane(LaneVec placed) {
  const FloatTag f;
  const LaneTag u;
  const LaneVec bias = hn::Set(u, std::uint32_t{112} << 23);
  if constexpr (kCodes == Codes::normal) {
    return hn::BitCast(f, hn::OrAnd(bias, placed, hn::Set(u, 0x87f00000U)));
  } else {
    const FloatVec magnitude = hn::BitCast(f, hn::OrAnd(bias, placed, hn::Set(u, 0x07f00000U)));
    const FloatVec repaired = hn::MulAdd(magnitude, hn::Set(f, 2.0F), hn::Set(f, -0x1p-14F));
    const LaneVec exact = hn::BitCast(u, hn::Min(magnitude, repaired));
    return hn::BitCast(f, hn::OrAnd(exact, placed, hn::Set(u, 0x80000000U)));
  }
}

/// The four codes of every lane (k, k + 1, k + 2, k + 3 of its channel), as value / 256.
///
/// An arithmetic shift of 16-bit halves by 4 brings the odd codes into place and keeps their signs, so that two codes
/// share one shift.
template <Codes kCodes>
HWY_INLINE void decode_quad(LaneVec codes, FloatVec (&values)[4]) {
  const LaneTag u;
  const hn::Repartition<std::int16_t, LaneTag> halves;
  const auto pairs = hn::BitCast(halves, codes);
  const LaneVec odd = hn::BitCast(u, hn::ShiftRight<4>(pairs));
  const LaneVec even = hn::BitCast(u, hn::ShiftRight<4>(hn::ShiftLeft<8>(pairs)));
  values[0] = decode_lane<kCodes>(hn::ShiftLeft<16>(even));
  values[1] = decode_lane<kCodes>(hn::ShiftLeft<16>(odd));
  values[2] = decode_lane<kCodes>(even);
  values[3] = decode_lane<kCodes>(odd);
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QPN8_KERNELS_CPU_QPN8_DECODE_INL_HPP
