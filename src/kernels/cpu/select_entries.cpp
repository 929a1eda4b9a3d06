#include "kernels/cpu/select_entries.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"
#include "kernels/cpu/select_largest.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/select_entries.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

template <class T>
void score_rows(const T* keys, std::size_t width, std::span<const float> q, std::span<const float> weights,
                std::span<float> scores) {
  for (std::size_t w = 0; w < scores.size(); ++w) {
    float sum = 0.0F;
    for (std::size_t head = 0; head < weights.size(); ++head) {
      // Written so that a NaN is kept.
      const float product = dot(keys + w * width, q.data() + head * width, width);
      sum += weights[head] * (product < 0.0F ? 0.0F : product);
    }
    scores[w] = sum;
  }
}

/// Scores of consecutive entries from `keys` on.
void score_entries_kernel(DType dtype, const std::byte* keys, std::int64_t width, std::span<const float> q,
                          std::span<const float> weights, std::span<float> scores) {
  const auto columns = static_cast<std::size_t>(width);
  if (dtype == DType::f32) return score_rows(reinterpret_cast<const float*>(keys), columns, q, weights, scores);
  score_rows(reinterpret_cast<const Half*>(keys), columns, q, weights, scores);
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(score_entries_kernel);

namespace {

void choose_largest(std::span<const float> scores, std::span<std::int32_t> order, std::span<std::int32_t> chosen) {
  std::iota(order.begin(), order.end(), 0);
  const auto before = [scores](std::int32_t a, std::int32_t b) {
    const std::int32_t first = order_of(scores[static_cast<std::size_t>(a)]);
    const std::int32_t second = order_of(scores[static_cast<std::size_t>(b)]);
    return first != second ? first > second : a < b;
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(chosen.size());
  std::nth_element(order.begin(), end - 1, order.end(), before);
  std::copy(order.begin(), end, chosen.begin());
  std::sort(chosen.begin(), chosen.end());
}

}  // namespace

void select_entries(MatrixView<const float> q, MatrixView<const float> weights, const RowPlaces& places,
                    const RowStore& keys, const SelectRule& rule, SelectScratch& scratch,
                    MatrixView<std::int32_t> chosen, ThreadTeam& team) {
  check(q.cols == rule.heads * keys.width && weights.cols == rule.heads && weights.rows == q.rows &&
            chosen.rows == q.rows && chosen.cols >= 1,
        "an indexer's shapes agree");
  scratch.scores.resize(std::max(scratch.scores.size(), static_cast<std::size_t>(keys.per_slot)));
  scratch.order.resize(scratch.scores.size());
  for (std::int64_t t = 0; t < q.rows; ++t) {
    const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
    const std::int64_t seen = entries_before(places.positions[static_cast<std::size_t>(t)], rule.ratio);
    check(slot >= 0 && slot < keys.slots && seen <= keys.per_slot, "a row has a place");
    const std::span<std::int32_t> row = chosen.row(t);
    if (seen <= chosen.cols) {
      std::iota(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(seen), 0);
      std::fill(row.begin() + static_cast<std::ptrdiff_t>(seen), row.end(), -1);
      continue;
    }
    const std::span<float> scores(scratch.scores.data(), static_cast<std::size_t>(seen));
    team.for_ranges(seen, row_grain(rule.heads * keys.width), [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(score_entries_kernel)
      (keys.dtype, keys.row(slot, begin), keys.width, q.row(t), weights.row(t),
       scores.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    });
    choose_largest(scores, std::span(scratch.order).first(scores.size()), row);
  }
}

std::vector<double> entry_scores_reference(std::span<const float> q, std::span<const float> weights, std::int64_t slot,
                                           const RowStore& keys, const SelectRule& rule, std::int64_t entries) {
  std::vector<double> scores(static_cast<std::size_t>(entries));
  for (std::int64_t w = 0; w < entries; ++w) {
    for (std::int64_t head = 0; head < rule.heads; ++head) {
      double product = 0;
      for (std::int64_t i = 0; i < keys.width; ++i) {
        product += static_cast<double>(q[static_cast<std::size_t>(head * keys.width + i)]) * value_at(keys, slot, w, i);
      }
      scores[static_cast<std::size_t>(w)] += weights[static_cast<std::size_t>(head)] * std::max(0.0, product);
    }
  }
  return scores;
}

}  // namespace qpn8::cpu
#endif
