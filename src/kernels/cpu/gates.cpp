#include "kernels/cpu/gates.hpp"

#include <cmath>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gates.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

void multiply_kernel(std::span<float> x, const float* gate) {
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x.data() + i), sigmoid(d, hn::LoadU(d, gate + i))), d, x.data() + i);
  });
}

void add_scaled_kernel(std::span<float> x, const float* delta, float factor) {
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto sum = hn::MulAdd(hn::Set(d, factor), hn::LoadU(d, delta + i), hn::LoadU(d, x.data() + i));
    hn::StoreU(sum, d, x.data() + i);
  });
}

void gated_norm_kernel(std::span<float> x, const float* weight, float eps, const float* gate, Gate kind) {
  const float inverse = 1.0F / std::sqrt(sum_of_squares(x.data(), x.size()) / static_cast<float>(x.size()) + eps);
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto unit = hn::Mul(hn::LoadU(d, x.data() + i), hn::Set(d, inverse));
    const auto z = hn::LoadU(d, gate + i);
    const auto opened = kind == Gate::silu ? silu(d, z) : sigmoid(d, z);
    hn::StoreU(hn::Mul(hn::Mul(unit, hn::LoadU(d, weight + i)), opened), d, x.data() + i);
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(multiply_kernel);
HWY_EXPORT(add_scaled_kernel);
HWY_EXPORT(gated_norm_kernel);

namespace {

// An exponential and a division cost about four times an addition.
constexpr std::int64_t kGateCost = 4;

template <class T>
T opened_by(T gate) {
  return T{1} / (T{1} + std::exp(-gate));
}

}  // namespace

void multiply_by_gate(MatrixView<float> x, MatrixView<const float> gate, ThreadTeam& team) {
  check(x.rows == gate.rows && x.cols == gate.cols, "a gate for every value");
  team.for_ranges(x.rows, row_grain(kGateCost * x.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) HWY_DYNAMIC_DISPATCH(multiply_kernel)(x.row(t), gate.row(t).data());
  });
}

void add_gated_rows(MatrixView<float> x, MatrixView<const float> delta, MatrixView<const float> gate,
                    ThreadTeam& team) {
  check(x.rows == delta.rows && x.cols == delta.cols && gate.rows == x.rows && gate.cols == 1, "a gate for every row");
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      HWY_DYNAMIC_DISPATCH(add_scaled_kernel)(x.row(t), delta.row(t).data(), opened_by(gate.row(t)[0]));
    }
  });
}

void gated_rms_norm(MatrixView<float> x, std::span<const float> weight, float eps, MatrixView<const float> gate,
                    Gate kind, ThreadTeam& team) {
  const auto width = static_cast<std::int64_t>(weight.size());
  check(width > 0 && x.cols % width == 0 && gate.rows == x.rows && gate.cols == x.cols, "a gate for every value");
  const std::int64_t runs = x.cols / width;
  team.for_ranges(x.rows * runs, row_grain(kGateCost * width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t run = begin; run < end; ++run) {
      const auto first = static_cast<std::size_t>(run % runs * width);
      HWY_DYNAMIC_DISPATCH(gated_norm_kernel)
      (x.row(run / runs).subspan(first, weight.size()), weight.data(), eps, gate.row(run / runs).data() + first, kind);
    }
  });
}

void multiply_by_gate_reference(MatrixView<const float> x, MatrixView<const float> gate, MatrixView<double> out) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::size_t i = 0; i < x.row(t).size(); ++i) {
      out.row(t)[i] = x.row(t)[i] * opened_by<double>(gate.row(t)[i]);
    }
  }
}

void add_gated_rows_reference(MatrixView<const float> x, MatrixView<const float> delta, MatrixView<const float> gate,
                              MatrixView<double> out) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::size_t i = 0; i < x.row(t).size(); ++i) {
      out.row(t)[i] = x.row(t)[i] + opened_by<double>(gate.row(t)[0]) * delta.row(t)[i];
    }
  }
}

void gated_rms_norm_reference(MatrixView<const float> x, std::span<const float> weight, float eps,
                              MatrixView<const float> gate, Gate kind, MatrixView<double> out) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::size_t first = 0; first < x.row(t).size(); first += weight.size()) {
      double squares = 0;
      for (std::size_t i = 0; i < weight.size(); ++i) {
        squares += static_cast<double>(x.row(t)[first + i]) * x.row(t)[first + i];
      }
      const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(weight.size()) + eps);
      for (std::size_t i = 0; i < weight.size(); ++i) {
        const double z = gate.row(t)[first + i];
        const double factor = opened_by(z) * (kind == Gate::silu ? z : 1.0);
        out.row(t)[first + i] = x.row(t)[first + i] * inverse * weight[i] * factor;
      }
    }
  }
}

}  // namespace qpn8::cpu
#endif
