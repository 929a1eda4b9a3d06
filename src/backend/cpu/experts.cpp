#include "backend/cpu/experts.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/cpu/add_rows.hpp"
#include "kernels/cpu/gather_rows.hpp"
#include "kernels/cpu/swiglu.hpp"

namespace qpn8::cpu {
namespace {

template <class Byte, class T>
MatrixView<Byte> bytes_of(MatrixView<T> matrix) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
  return {reinterpret_cast<Byte*>(matrix.data), matrix.rows, matrix.cols * kWidth, matrix.stride * kWidth};
}

}  // namespace

void ExpertRunner::group(std::size_t experts, MatrixView<const std::int32_t> ids, MatrixView<const float> weights) {
  const auto routes = static_cast<std::size_t>(ids.rows * ids.cols);
  first_.assign(experts + 1, 0);
  rows_.resize(std::max(rows_.size(), routes));
  weights_.resize(std::max(weights_.size(), routes));
  for (std::int64_t t = 0; t < ids.rows; ++t) {
    for (const std::int32_t id : ids.row(t)) {
      check(id >= 0 && static_cast<std::size_t>(id) < experts, "a route names an expert");
      ++first_[static_cast<std::size_t>(id)];
    }
  }
  // Counts become ends; filling backwards turns the ends into beginnings.
  for (std::size_t e = 1; e <= experts; ++e) first_[e] += first_[e - 1];
  for (std::int64_t t = ids.rows - 1; t >= 0; --t) {
    for (std::size_t j = 0; j < ids.row(t).size(); ++j) {
      const std::size_t route = --first_[static_cast<std::size_t>(ids.row(t)[j])];
      rows_[route] = static_cast<std::int32_t>(t);
      weights_[route] = weights.row(t)[j];
    }
  }
}

void ExpertRunner::run(const ExpertWeights& experts, MatrixView<const float> x, MatrixView<const std::int32_t> ids,
                       MatrixView<const float> weights, MatrixView<float> out, const ProductContext& context) {
  check(ids.rows == x.rows && weights.rows == x.rows && weights.cols == ids.cols && out.rows == x.rows &&
            experts.gate_up.size() == experts.down.size(),
        "routes for every row, two products an expert");
  for (std::int64_t t = 0; t < out.rows; ++t) std::fill(out.row(t).begin(), out.row(t).end(), 0.0F);
  if (x.rows == 0) return;
  group(experts.gate_up.size(), ids, weights);
  // Sized for all rows at one expert, so that memory does not depend on the routes.
  const std::int64_t width = experts.down.front()->k();
  const MatrixView<float> inputs = inputs_.matrix(x.rows, x.cols);
  const MatrixView<float> gate_up = gate_up_.matrix(x.rows, 2 * width);
  const MatrixView<float> hidden = hidden_.matrix(x.rows, width);
  const MatrixView<float> outputs = outputs_.matrix(x.rows, out.cols);
  for (std::size_t e = 0; e < experts.gate_up.size(); ++e) {
    const std::size_t first = first_[e];
    const std::size_t count = first_[e + 1] - first;
    if (count == 0) continue;
    const auto m = static_cast<std::int64_t>(count);
    check(m <= x.rows, "a row's experts are distinct");
    const std::span<const std::int32_t> rows(rows_.data() + first, count);
    gather_rows(bytes_of<const std::byte>(x), rows, bytes_of<std::byte>(inputs.row_range(0, m)), context.team);
    static_cast<const CpuLinear&>(*experts.gate_up[e]).apply(inputs.row_range(0, m), gate_up.row_range(0, m), context);
    swiglu(gate_up.row_range(0, m), hidden.row_range(0, m), context.team, experts.limit);
    static_cast<const CpuLinear&>(*experts.down[e]).apply(hidden.row_range(0, m), outputs.row_range(0, m), context);
    add_weighted_rows(outputs.row_range(0, m), rows, {weights_.data() + first, count}, out, context.team);
  }
}

}  // namespace qpn8::cpu
