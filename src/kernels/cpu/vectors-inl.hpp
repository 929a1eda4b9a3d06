// Vector helpers shared by the kernels; compiled once for every instruction set, hence the toggling guard.
#if defined(QPN8_KERNELS_CPU_VECTORS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QPN8_KERNELS_CPU_VECTORS_INL_HPP_
#undef QPN8_KERNELS_CPU_VECTORS_INL_HPP_
#else
#define QPN8_KERNELS_CPU_VECTORS_INL_HPP_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstddef>

#include "quant/load_float-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using simd::HWY_NAMESPACE::load_as_float;
using simd::HWY_NAMESPACE::scalar_as_float;

/// Calls body(d, i) for vectors that cover [0, count): whole ones first, then one lane at a time, so that nothing past
/// the end is touched and the last elements see the same arithmetic as the others.
template <class Body>
HWY_INLINE void for_vectors(std::size_t count, const Body& body) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) body(d, i);
  for (; i < count; ++i) body(one, i);
}

/// Stores as T, rounded to nearest even where that is F16.
template <class D>
HWY_INLINE void store_rounded(D d, hn::Vec<D> values, float* to) {
  hn::StoreU(values, d, to);
}

template <class D>
HWY_INLINE void store_rounded([[maybe_unused]] D d, hn::Vec<D> values, Half* to) {
#if HWY_TARGET == HWY_EMU128
  // Highway's conversion in plain C++ does not know infinities and NaN.
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(values, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) to[i] = to_half(lanes[i]);
#else
  const hn::Rebind<hwy::float16_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, values), narrow, reinterpret_cast<hwy::float16_t*>(to));
#endif
}

/// The product of a stored row and one in FP32. Two chains, since one would wait for the latency of its own additions.
template <class T>
HWY_INLINE float dot(const T* stored, const float* x, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    even = hn::MulAdd(load_as_float(d, stored + i), hn::LoadU(d, x + i), even);
    odd = hn::MulAdd(load_as_float(d, stored + i + lanes), hn::LoadU(d, x + i + lanes), odd);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < count; ++i) sum += scalar_as_float(stored[i]) * x[i];
  return sum;
}

HWY_INLINE float sum_of_squares(const float* x, std::size_t count) { return dot(x, x, count); }

/// e^x for x <= 0, within 2 ulp of the exact value down to the smallest normal result, 0 below -104; NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp_nonpositive(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
}

/// 1 / (1 + e^-x), without an overflow for any x.
template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0F);
  const auto e = exp_nonpositive(d, hn::Neg(hn::Abs(x)));
  const auto numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

/// x / (1 + e^-x)
template <class D>
HWY_INLINE hn::Vec<D> silu(D d, hn::Vec<D> x) {
  return hn::Mul(x, sigmoid(d, x));
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
