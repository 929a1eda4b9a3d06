#include "kernels/cpu/swiglu.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/swiglu.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

void swiglu_kernel(const float* gate, const float* up, std::int64_t count, float* out) {
  for_vectors(static_cast<std::size_t>(count), [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(silu(d, hn::LoadU(d, gate + i)), hn::LoadU(d, up + i)), d, out + i);
  });
}

void limited_swiglu_kernel(const float* gate, const float* up, float limit, std::int64_t count, float* out) {
  for_vectors(static_cast<std::size_t>(count), [&](auto d, std::size_t i) HWY_ATTR {
    const auto highest = hn::Set(d, limit);
    // By comparison: a vector's own minimum and maximum do not agree on NaN from one instruction set to the next.
    const auto not_above = [&](auto value) HWY_ATTR { return hn::IfThenElse(hn::Gt(value, highest), highest, value); };
    const auto g = not_above(hn::LoadU(d, gate + i));
    const auto u = hn::Neg(not_above(hn::Neg(not_above(hn::LoadU(d, up + i)))));
    hn::StoreU(hn::Mul(silu(d, g), u), d, out + i);
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(swiglu_kernel);
HWY_EXPORT(limited_swiglu_kernel);

void swiglu(MatrixView<const float> gate_up, MatrixView<float> out, ThreadTeam& team, float limit) {
  check(gate_up.cols == 2 * out.cols && gate_up.rows == out.rows, "gate and up are as wide as the output");
  // An exponential and a division cost about four times an addition.
  team.for_ranges(out.rows, row_grain(4 * out.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* gate = gate_up.row(t).data();
      const float* up = gate + out.cols;
      if (limit > 0.0F) {
        HWY_DYNAMIC_DISPATCH(limited_swiglu_kernel)(gate, up, limit, out.cols, out.row(t).data());
      } else {
        HWY_DYNAMIC_DISPATCH(swiglu_kernel)(gate, up, out.cols, out.row(t).data());
      }
    }
  });
}

void swiglu_reference(MatrixView<const float> gate_up, MatrixView<double> out, float limit) {
  const double highest = limit > 0.0F ? limit : std::numeric_limits<double>::infinity();
  for (std::int64_t t = 0; t < out.rows; ++t) {
    for (std::int64_t i = 0; i < out.cols; ++i) {
      const double gate = std::min<double>(gate_up.row(t)[static_cast<std::size_t>(i)], highest);
      const double up = std::clamp<double>(gate_up.row(t)[static_cast<std::size_t>(out.cols + i)], -highest, highest);
      out.row(t)[static_cast<std::size_t>(i)] = gate / (1.0 + std::exp(-gate)) * up;
    }
  }
}

}  // namespace qpn8::cpu
#endif
