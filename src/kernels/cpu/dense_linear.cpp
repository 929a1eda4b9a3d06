#include "kernels/cpu/dense_linear.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cpu/gemm.hpp"
#include "qpn8/error.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense_linear.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "quant/load_float-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace load = simd::HWY_NAMESPACE;

/// How many elements ahead of its use a weight is asked for: the same place of the next channels if they are near
/// enough to stay in the first-level cache until then, else a little further along the same ones.
HWY_INLINE std::int64_t prefetch_distance(std::int64_t next_channels, std::int64_t element_bytes) {
  constexpr std::int64_t kFar = 16384;
  constexpr std::int64_t kNear = 2048;
  return next_channels * element_bytes <= kFar ? next_channels : kNear / element_bytes;
}

/// y[:, first .. first + kChannels) of kRows rows: one sum a lane over k, the lanes added at the end, then what is left
/// of k one by one. The order of a sum depends on nothing but k.
template <int kRows, int kChannels, class T>
HWY_INLINE void multiply_channels(const T* weight, std::int64_t k, MatrixView<const float> x, MatrixView<float> y,
                                  std::int64_t first) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* rows = weight + first * k;
  hn::Vec<decltype(d)> sums[kRows][kChannels];
  for (auto& row : sums) {
    for (auto& sum : row) sum = hn::Zero(d);
  }
  const std::int64_t ahead = prefetch_distance(kChannels * k, static_cast<std::int64_t>(sizeof(T)));
  std::int64_t at = 0;
  for (; at + lanes <= k; at += lanes) {
    hn::Vec<decltype(d)> weights[kChannels];
    for (int c = 0; c < kChannels; ++c) {
      weights[c] = load::load_as_float(d, rows + c * k + at);
      hwy::Prefetch(rows + c * k + at + ahead);
    }
    for (int r = 0; r < kRows; ++r) {
      const auto inputs = hn::LoadU(d, x.data + r * x.stride + at);
      for (int c = 0; c < kChannels; ++c) sums[r][c] = hn::MulAdd(weights[c], inputs, sums[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kChannels; ++c) {
      float sum = hn::GetLane(hn::SumOfLanes(d, sums[r][c]));
      for (std::int64_t i = at; i < k; ++i) sum += load::scalar_as_float(rows[c * k + i]) * x.data[r * x.stride + i];
      y.data[r * y.stride + first + c] = sum;
    }
  }
}

/// Channels side by side whose sums fit the registers (32 or 16), at most 4: as many streams as hide a sum's latency,
/// and the fewer of them the more often x is read again.
constexpr int channels_at_once(int rows) {
  const int sums = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 24 : 10;
  return std::min(4, std::max(1, sums / rows));
}

template <int kRows, class T>
void run_channels(const T* weight, std::int64_t k, MatrixView<const float> x, MatrixView<float> y, std::int64_t begin,
                  std::int64_t end) {
  constexpr int kWide = channels_at_once(kRows);
  for (; begin + kWide <= end; begin += kWide) multiply_channels<kRows, kWide>(weight, k, x, y, begin);
  for (; begin < end; ++begin) multiply_channels<kRows, 1>(weight, k, x, y, begin);
}

template <class T>
void run_type(const DenseWeightView& view, MatrixView<const float> x, MatrixView<float> y, std::int64_t begin,
              std::int64_t end) {
  const T* weight = static_cast<const T*>(view.data);
  switch (x.rows) {
    case 1:
      return run_channels<1>(weight, view.k, x, y, begin, end);
    case 2:
      return run_channels<2>(weight, view.k, x, y, begin, end);
    case 3:
      return run_channels<3>(weight, view.k, x, y, begin, end);
    case 4:
      return run_channels<4>(weight, view.k, x, y, begin, end);
    case 5:
      return run_channels<5>(weight, view.k, x, y, begin, end);
    case 6:
      return run_channels<6>(weight, view.k, x, y, begin, end);
    case 7:
      return run_channels<7>(weight, view.k, x, y, begin, end);
    default:
      return run_channels<8>(weight, view.k, x, y, begin, end);
  }
}

/// The output channels [begin, end) of a product of up to 8 rows.
void run_dense_channels(const DenseWeightView& view, MatrixView<const float> x, MatrixView<float> y, std::int64_t begin,
                        std::int64_t end) {
  switch (view.dtype) {
    case DType::f16:
      return run_type<Half>(view, x, y, begin, end);
    case DType::bf16:
      return run_type<BFloat16>(view, x, y, begin, end);
    default:
      return run_type<float>(view, x, y, begin, end);
  }
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {
namespace {

HWY_EXPORT(run_dense_channels);

void check_arguments(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y) {
  if (weight.dtype != DType::f32 && weight.dtype != DType::f16 && weight.dtype != DType::bf16) {
    throw Error(Error::unsupported,
                fmt::format("dense product: weights of type {}; F32, F16 and BF16 are", to_string(weight.dtype)));
  }
  if (x.cols == weight.k && y.cols == weight.n && x.rows == y.rows) return;
  throw Error(
      Error::bad_argument,
      fmt::format("dense product: x [{}, {}] and y [{}, {}] for a weight of K={} N={}; x [m, K] and y [m, N] are "
                  "needed",
                  x.rows, x.cols, y.rows, y.cols, weight.k, weight.n));
}

}  // namespace

void dense_linear(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y, Workspace& workspace,
                  ThreadTeam& team) {
  check_arguments(weight, x, y);
  if (x.rows == 0) return;
  if (x.rows > kMaxPackedRows) return gemm(weight, x, y, workspace, team);
  // Whole cache lines of y, and enough of them that taking the next ones costs nothing beside reading their weights.
  constexpr std::int64_t kGrain = 64;
  team.for_shared_ranges(weight.n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(run_dense_channels)(weight, x, y, begin, end);
  });
}

void dense_channels(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y, std::int64_t begin,
                    std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(run_dense_channels)(weight, x, y, begin, end);
}

}  // namespace qpn8::cpu
#endif  // HWY_ONCE
