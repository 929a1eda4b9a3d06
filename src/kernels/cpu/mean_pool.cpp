#include "kernels/cpu/mean_pool.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mean_pool.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

void add_row_kernel(const float* x, std::span<float> sum) {
  for_vectors(sum.size(), [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, sum.data() + i), hn::LoadU(d, x + i)), d, sum.data() + i);
  });
}

/// The entry is the mean of `count` rows, of which it holds the sum.
void finish_mean_kernel(std::span<float> entry, std::int64_t count, const float* norm, float eps) {
  const float share = 1.0F / static_cast<float>(count);
  for (float& value : entry) value *= share;
  const float mean = sum_of_squares(entry.data(), entry.size()) / static_cast<float>(entry.size());
  const float inverse = 1.0F / std::sqrt(mean + eps);
  for_vectors(entry.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto unit = hn::Mul(hn::LoadU(d, entry.data() + i), hn::Set(d, inverse));
    hn::StoreU(hn::Mul(unit, hn::LoadU(d, norm + i)), d, entry.data() + i);
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(add_row_kernel);
HWY_EXPORT(finish_mean_kernel);

namespace {

template <class T>
void rotate_head(std::span<T> entry, std::span<const float> frequencies, std::int64_t position) {
  const std::size_t apart = frequencies.size();
  for (std::size_t i = 0; i < apart; ++i) {
    const double angle = static_cast<float>(position) * frequencies[i];
    const auto cosine = static_cast<T>(std::cos(angle));
    const auto sine = static_cast<T>(std::sin(angle));
    const T a = entry[i];
    const T b = entry[i + apart];
    entry[i] = a * cosine - b * sine;
    entry[i + apart] = b * cosine + a * sine;
  }
}

}  // namespace

void mean_pool(MatrixView<const float> x, const RowPlaces& places, const MeanPoolRule& rule, const RowStore& pending,
               const RowStore& entries, MatrixView<float> scratch, ThreadTeam& team) {
  check(static_cast<std::int64_t>(rule.norm.size()) == x.cols && entries.width == x.cols && scratch.cols == x.cols &&
            scratch.rows >= x.rows && pending.dtype == DType::f32 && pending.width == x.cols &&
            pending.per_slot >= rule.ratio && 2 * rule.frequencies.size() <= rule.norm.size(),
        "shapes of a pooling agree");
  team.for_ranges(x.rows, row_grain(2 * x.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t next = places.positions[static_cast<std::size_t>(t)] + std::int64_t{1};
      if (next % rule.ratio != 0) continue;
      const std::int64_t window = next - rule.ratio;
      const std::span<float> entry = scratch.row(t);
      std::fill(entry.begin(), entry.end(), 0.0F);
      for (std::int64_t position = window; position < next; ++position) {
        HWY_DYNAMIC_DISPATCH(add_row_kernel)(row_at(x, places, pending, t, position), entry);
      }
      HWY_DYNAMIC_DISPATCH(finish_mean_kernel)(entry, rule.ratio, rule.norm.data(), rule.eps);
      rotate_head(entry, rule.frequencies, window);
      check(window / rule.ratio < entries.per_slot, "an entry has a place");
      store_row(entry, entries, places.slots[static_cast<std::size_t>(t)], window / rule.ratio);
    }
  });
  store_rows(x, places, pending, team);
}

void mean_pool_reference(MatrixView<const float> x, std::int64_t w, const MeanPoolRule& rule, std::span<double> entry) {
  double squares = 0;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    entry[i] = 0;
    for (std::int64_t position = w * rule.ratio; position < (w + 1) * rule.ratio; ++position) {
      entry[i] += x.row(position)[i];
    }
    entry[i] /= static_cast<double>(rule.ratio);
    squares += entry[i] * entry[i];
  }
  const double root = std::sqrt(squares / static_cast<double>(entry.size()) + rule.eps);
  for (std::size_t i = 0; i < entry.size(); ++i) entry[i] = entry[i] / root * rule.norm[i];
  rotate_head(entry, rule.frequencies, w * rule.ratio);
}

}  // namespace qpn8::cpu
#endif
