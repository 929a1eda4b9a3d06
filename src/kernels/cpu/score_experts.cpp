#include "kernels/cpu/score_experts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"
#include "kernels/cpu/select_largest.hpp"

namespace qpn8::cpu {
namespace {

/// sqrt(log(1 + e^x)) without an overflow for any x.
template <class T>
T score(T logit) {
  return std::sqrt(std::max(logit, T{0}) + std::log1p(std::exp(-std::abs(logit))));
}

template <class T>
T bias_of(const ScoreRule& rule, std::size_t expert) {
  return rule.bias.empty() ? T{0} : static_cast<T>(rule.bias[expert]);
}

/// Weights of chosen experts from their scores. The sum's floor keeps a row of vanishing scores from becoming NaN.
template <class T>
void weigh(std::span<const float> logits, std::span<const std::int32_t> ids, float scale, std::span<T> weights) {
  T sum = 0;
  for (std::size_t j = 0; j < ids.size(); ++j) {
    weights[j] = score(static_cast<T>(logits[static_cast<std::size_t>(ids[j])]));
    sum += weights[j];
  }
  for (T& weight : weights) weight = weight / (sum + static_cast<T>(1e-20)) * static_cast<T>(scale);
}

void route_row(std::span<const float> logits, const ScoreRule& rule, std::span<std::int32_t> ids,
               std::span<float> weights) {
  if (!rule.ids_given) {
    const auto value = [&](std::size_t e) { return score(logits[e]) + bias_of<float>(rule, e); };
    select_largest(value, logits.size(), ids, weights);
  }
  for (const std::int32_t id : ids) {
    check(id >= 0 && static_cast<std::size_t>(id) < logits.size(), "a route names an expert");
  }
  weigh<float>(logits, ids, rule.scale, weights);
}

}  // namespace

void score_experts(MatrixView<const float> logits, const ScoreRule& rule, MatrixView<std::int32_t> ids,
                   MatrixView<float> weights, ThreadTeam& team) {
  check(ids.cols >= 1 && ids.cols <= logits.cols && ids.rows == logits.rows && weights.rows == ids.rows &&
            weights.cols == ids.cols &&
            (rule.bias.empty() || static_cast<std::int64_t>(rule.bias.size()) == logits.cols),
        "at least one expert a token, at most all");
  // An exponential, a logarithm and a root an expert.
  team.for_ranges(logits.rows, row_grain(40 * logits.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) route_row(logits.row(t), rule, ids.row(t), weights.row(t));
  });
}

void score_experts_reference(MatrixView<const float> logits, const ScoreRule& rule, MatrixView<std::int32_t> ids,
                             MatrixView<double> weights) {
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    const std::span<const float> row = logits.row(t);
    if (!rule.ids_given) {
      std::vector<double> values(row.size());
      for (std::size_t e = 0; e < row.size(); ++e) {
        values[e] = std::sqrt(std::log1p(std::exp(static_cast<double>(row[e])))) + bias_of<double>(rule, e);
      }
      std::vector<std::int32_t> order(row.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
      });
      std::copy_n(order.begin(), ids.row(t).size(), ids.row(t).begin());
    }
    weigh<double>(row, ids.row(t), rule.scale, weights.row(t));
  }
}

}  // namespace qpn8::cpu
