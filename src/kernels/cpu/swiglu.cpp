#include "kernels/cpu/swiglu.hpp"

#include <cmath>

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

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(swiglu_kernel);

void swiglu(MatrixView<const float> gate_up, MatrixView<float> out, ThreadTeam& team) {
  check(gate_up.cols == 2 * out.cols && gate_up.rows == out.rows, "gate and up are as wide as the output");
  // An exponential and a division cost about four times an addition.
  team.for_ranges(out.rows, row_grain(4 * out.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* gate = gate_up.row(t).data();
      HWY_DYNAMIC_DISPATCH(swiglu_kernel)(gate, gate + out.cols, out.cols, out.row(t).data());
    }
  });
}

void swiglu_reference(MatrixView<const float> gate_up, MatrixView<double> out) {
  for (std::int64_t t = 0; t < out.rows; ++t) {
    for (std::int64_t i = 0; i < out.cols; ++i) {
      const double gate = gate_up.row(t)[static_cast<std::size_t>(i)];
      const double up = gate_up.row(t)[static_cast<std::size_t>(out.cols + i)];
      out.row(t)[static_cast<std::size_t>(i)] = gate / (1.0 + std::exp(-gate)) * up;
    }
  }
}

}  // namespace qpn8::cpu
#endif
