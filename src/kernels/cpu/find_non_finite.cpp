#include "kernels/cpu/find_non_finite.hpp"

#include <cmath>

#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/find_non_finite.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

// Whole vectors are only told apart by "all finite"; the one that is not, and the tail, are searched lane by lane.
std::int32_t first_non_finite(std::span<const float> row) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  while (i + hn::Lanes(d) <= row.size() && hn::AllTrue(d, hn::IsFinite(hn::LoadU(d, row.data() + i)))) {
    i += hn::Lanes(d);
  }
  for (; i < row.size(); ++i) {
    if (!std::isfinite(row[i])) return static_cast<std::int32_t>(i);
  }
  return -1;
}

void find_non_finite_kernel(MatrixView<const float> x, std::int32_t* out) {
  for (std::int64_t t = 0; t < x.rows; ++t) out[t] = first_non_finite(x.row(t));
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(find_non_finite_kernel);

void find_non_finite(MatrixView<const float> x, std::span<std::int32_t> out, ThreadTeam& team) {
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(find_non_finite_kernel)(x.row_range(begin, end - begin), out.data() + begin);
  });
}

void find_non_finite_reference(MatrixView<const float> x, std::span<std::int32_t> out) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    std::int32_t& first = out[static_cast<std::size_t>(t)];
    first = -1;
    for (std::int64_t i = x.cols - 1; i >= 0; --i) {
      if (!std::isfinite(x.row(t)[static_cast<std::size_t>(i)])) first = static_cast<std::int32_t>(i);
    }
  }
}

}  // namespace qpn8::cpu
#endif
