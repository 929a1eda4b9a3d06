#include "kernels/cpu/rms_norm.hpp"

#include <cmath>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rms_norm.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

// out may be x.
void normalise(const float* x, const float* weight, std::size_t count, float eps, float* out) {
  const float mean = sum_of_squares(x, count) / static_cast<float>(count);
  const float inverse = 1.0F / std::sqrt(mean + eps);
  for_vectors(count, [&](auto d, std::size_t i) HWY_ATTR {
    const auto unit = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, inverse));
    hn::StoreU(hn::Mul(unit, hn::LoadU(d, weight + i)), d, out + i);
  });
}

void rms_norm_kernel(MatrixView<const float> x, std::span<const float> weight, float eps, MatrixView<float> out) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    normalise(x.row(t).data(), weight.data(), weight.size(), eps, out.row(t).data());
  }
}

void add_rms_norm_kernel(MatrixView<float> residual, MatrixView<const float> delta, std::span<const float> weight,
                         float eps, MatrixView<float> out) {
  for (std::int64_t t = 0; t < residual.rows; ++t) {
    float* sum = residual.row(t).data();
    const float* addend = delta.row(t).data();
    for_vectors(weight.size(), [&](auto d, std::size_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, addend + i)), d, sum + i);
    });
    normalise(sum, weight.data(), weight.size(), eps, out.row(t).data());
  }
}

void head_rms_norm_kernel(MatrixView<float> x, std::span<const float> weight, float eps) {
  const auto head_dim = static_cast<std::int64_t>(weight.size());
  for (std::int64_t t = 0; t < x.rows; ++t) {
    float* row = x.row(t).data();
    for (std::int64_t first = 0; first < x.cols; first += head_dim) {
      normalise(row + first, weight.data(), weight.size(), eps, row + first);
    }
  }
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(rms_norm_kernel);
HWY_EXPORT(add_rms_norm_kernel);
HWY_EXPORT(head_rms_norm_kernel);

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps, MatrixView<float> out,
              ThreadTeam& team) {
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(rms_norm_kernel)
    (x.row_range(begin, end - begin), weight, eps, out.row_range(begin, end - begin));
  });
}

void add_rms_norm(MatrixView<float> residual, MatrixView<const float> delta, std::span<const float> weight, float eps,
                  MatrixView<float> out, ThreadTeam& team) {
  team.for_ranges(residual.rows, row_grain(residual.cols), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t count = end - begin;
    HWY_DYNAMIC_DISPATCH(add_rms_norm_kernel)
    (residual.row_range(begin, count), delta.row_range(begin, count), weight, eps, out.row_range(begin, count));
  });
}

void head_rms_norm(MatrixView<float> x, std::span<const float> weight, float eps, ThreadTeam& team) {
  check(x.cols % static_cast<std::int64_t>(weight.size()) == 0, "rows are whole heads");
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(head_rms_norm_kernel)(x.row_range(begin, end - begin), weight, eps);
  });
}

void rms_norm_reference(MatrixView<const float> x, std::span<const float> weight, float eps, MatrixView<double> out) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    double sum = 0;
    for (float value : x.row(t)) sum += static_cast<double>(value) * value;
    const double root = std::sqrt(sum / static_cast<double>(x.cols) + eps);
    for (std::size_t i = 0; i < weight.size(); ++i) out.row(t)[i] = x.row(t)[i] / root * weight[i];
  }
}

}  // namespace qpn8::cpu
#endif
