#include "kernels/cpu/add_rows.hpp"

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/add_rows.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

void add_scaled(const float* x, float factor, std::size_t count, float* sum) {
  for_vectors(count, [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), hn::Set(d, factor), hn::LoadU(d, sum + i)), d, sum + i);
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(add_scaled);

void add_bias(std::span<const float> bias, MatrixView<float> y, ThreadTeam& team) {
  check(static_cast<std::int64_t>(bias.size()) == y.cols, "a bias for every column");
  team.for_ranges(y.rows, row_grain(y.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      HWY_DYNAMIC_DISPATCH(add_scaled)(bias.data(), 1.0F, bias.size(), y.row(t).data());
    }
  });
}

void add_rows(MatrixView<float> x, MatrixView<const float> delta, ThreadTeam& team) {
  check(x.cols == delta.cols && x.rows == delta.rows, "what is added is as large");
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      HWY_DYNAMIC_DISPATCH(add_scaled)(delta.row(t).data(), 1.0F, delta.row(t).size(), x.row(t).data());
    }
  });
}

void add_weighted_rows(MatrixView<const float> x, std::span<const std::int32_t> rows, std::span<const float> weights,
                       MatrixView<float> out, ThreadTeam& team) {
  check(x.cols == out.cols, "rows are as long as the sums");
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      HWY_DYNAMIC_DISPATCH(add_scaled)
      (x.row(i).data(), weights[at], static_cast<std::size_t>(x.cols), out.row(rows[at]).data());
    }
  });
}

}  // namespace qpn8::cpu
#endif
