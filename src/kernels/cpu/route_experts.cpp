#include "kernels/cpu/route_experts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"
#include "kernels/cpu/select_largest.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/route_experts.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

/// Sum of e^(logit - largest); NaN if any logit is.
float sum_of_exponentials(std::span<const float> logits, float largest) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  auto sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= logits.size(); i += hn::Lanes(d)) {
    sum = hn::Add(sum, exp_nonpositive(d, hn::Sub(hn::LoadU(d, logits.data() + i), hn::Set(d, largest))));
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < logits.size(); ++i) total += hn::GetLane(exp_nonpositive(one, hn::Set(one, logits[i] - largest)));
  return total;
}

/// In place: logits become e^(logit - largest) / total.
void to_probabilities(std::span<float> logits, float largest, float total) {
  for_vectors(logits.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto shifted = hn::Sub(hn::LoadU(d, logits.data() + i), hn::Set(d, largest));
    hn::StoreU(hn::Div(exp_nonpositive(d, shifted), hn::Set(d, total)), d, logits.data() + i);
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(sum_of_exponentials);
HWY_EXPORT(to_probabilities);

namespace {

void route_row(std::span<const float> logits, bool normalise, std::span<std::int32_t> ids, std::span<float> weights) {
  select_largest([logits](std::size_t e) { return logits[e]; }, logits.size(), ids, weights);
  const float largest = weights.front();
  const float total = HWY_DYNAMIC_DISPATCH(sum_of_exponentials)(logits, largest);
  HWY_DYNAMIC_DISPATCH(to_probabilities)(weights, largest, total);
  if (!normalise) return;
  const float sum = std::accumulate(weights.begin(), weights.end(), 0.0F);
  for (float& weight : weights) weight /= sum;
}

}  // namespace

void route_experts(MatrixView<const float> logits, bool normalise, MatrixView<std::int32_t> ids,
                   MatrixView<float> weights, ThreadTeam& team) {
  check(ids.cols >= 1 && ids.cols <= logits.cols, "at least one expert a token, at most all");
  // An exponential and a comparison an expert.
  team.for_ranges(logits.rows, row_grain(4 * logits.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) route_row(logits.row(t), normalise, ids.row(t), weights.row(t));
  });
}

void route_experts_reference(MatrixView<const float> logits, bool normalise, MatrixView<std::int32_t> ids,
                             MatrixView<double> weights) {
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    const std::span<const float> row = logits.row(t);
    std::vector<std::int32_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
    });
    double total = 0;
    for (float logit : row) total += std::exp(static_cast<double>(logit));
    double sum = 0;
    for (std::size_t j = 0; j < ids.row(t).size(); ++j) {
      ids.row(t)[j] = order[j];
      weights.row(t)[j] = std::exp(static_cast<double>(row[static_cast<std::size_t>(order[j])])) / total;
      sum += weights.row(t)[j];
    }
    for (double& weight : weights.row(t)) weight /= normalise ? sum : 1.0;
  }
}

}  // namespace qpn8::cpu
#endif
