#include "kernels/cpu/causal_conv.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "base/divide_up.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/causal_conv.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

/// `inputs` and `weights` hold a pointer a tap that the row sees.
void convolve_kernel(std::span<const float* const> inputs, std::span<const float* const> weights, std::size_t count,
                     float* out) {
  for_vectors(count, [&](auto d, std::size_t i) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      sum = hn::MulAdd(hn::LoadU(d, weights[j] + i), hn::LoadU(d, inputs[j] + i), sum);
    }
    hn::StoreU(silu(d, sum), d, out + i);
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(convolve_kernel);

namespace {

// Enough channels to be worth a call, few enough to share one row of many channels among threads.
constexpr std::int64_t kChannelBlock = 512;

}  // namespace

void causal_conv(MatrixView<const float> x, const RowPlaces& places, MatrixView<const float> weights,
                 std::int64_t dilation, const RowStore& history, MatrixView<float> out, ThreadTeam& team) {
  const std::int64_t taps = weights.rows;
  check(taps >= 1 && taps <= kMostTaps && weights.cols == x.cols && out.cols == x.cols && out.rows == x.rows &&
            history.dtype == DType::f32 && history.width == x.cols && history.per_slot >= dilation * (taps - 1),
        "shapes of a convolution agree");
  const std::int64_t blocks = divide_up(x.cols, kChannelBlock);
  team.for_ranges(x.rows * blocks, row_grain(taps * kChannelBlock), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t t = task / blocks;
      const std::int64_t first = task % blocks * kChannelBlock;
      std::array<const float*, kMostTaps> inputs = {};
      std::array<const float*, kMostTaps> taken = {};
      std::size_t seen = 0;
      for (std::int64_t j = 0; j < taps; ++j) {
        const std::int64_t position = places.positions[static_cast<std::size_t>(t)] - dilation * (taps - 1 - j);
        if (position < 0) continue;
        inputs[seen] = row_at(x, places, history, t, position) + first;
        taken[seen++] = weights.row(j).data() + first;
      }
      HWY_DYNAMIC_DISPATCH(convolve_kernel)
      ({inputs.data(), seen}, {taken.data(), seen}, static_cast<std::size_t>(std::min(kChannelBlock, x.cols - first)),
       out.row(t).data() + first);
    }
  });
  if (history.per_slot > 0) store_rows(x, places, history, team);
}

void causal_conv_reference(MatrixView<const float> x, MatrixView<const float> weights, std::int64_t dilation,
                           MatrixView<double> out) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::size_t c = 0; c < x.row(t).size(); ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < weights.rows; ++j) {
        const std::int64_t position = t - dilation * (weights.rows - 1 - j);
        if (position >= 0) sum += static_cast<double>(weights.row(j)[c]) * x.row(position)[c];
      }
      out.row(t)[c] = sum / (1.0 + std::exp(-sum));
    }
  }
}

}  // namespace qpn8::cpu
#endif
