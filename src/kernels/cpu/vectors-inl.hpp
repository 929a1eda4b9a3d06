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

/// e^x for x <= 0, within 2 ulp of the exact value down to the smallest normal result, 0 below -104; NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp_nonpositive(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, x), x);
}

/// x / (1 + e^-x), without an overflow for any x.
template <class D>
HWY_INLINE hn::Vec<D> silu(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0F);
  const auto e = exp_nonpositive(d, hn::Neg(hn::Abs(x)));
  const auto numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Mul(x, hn::Div(numerator, hn::Add(one, e)));
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
