#include "backend/cuda/experts.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "kernels/cuda/experts.hpp"
#include "kernels/cuda/rows.hpp"

namespace qpn8::cuda {
namespace {

/// Tokens a launch; bounds the scratch memory.
constexpr std::int64_t kTokens = 64;

void add_weights(const std::vector<std::unique_ptr<Linear>>& experts, std::vector<ExpertWeight>& weights) {
  for (const auto& expert : experts) weights.push_back(static_cast<const CudaLinear&>(*expert).as_expert());
}

/// The two products of every expert.
struct Tables {
  ExpertTable gate_up;
  ExpertTable down;
};

Tables tables_of(const ExpertWeights& experts) {
  DeviceBuffer& memory = static_cast<const CudaLinear&>(*experts.gate_up.front()).expert_table();
  if (memory.size() == 0) {
    std::vector<ExpertWeight> weights;
    add_weights(experts.gate_up, weights);
    add_weights(experts.down, weights);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(weights));
    memory = DeviceBuffer(bytes.size(), "a table of experts");
    memory.fill(bytes);
  }
  const auto* first = memory.as<ExpertWeight>();
  return {.gate_up = {first, experts.gate_up.front()->n(), experts.gate_up.front()->k()},
          .down = {first + experts.gate_up.size(), experts.down.front()->n(), experts.down.front()->k()}};
}

}  // namespace

bool ExpertRunner::run(const Call& call, const ProductContext& context) {
  check(call.ids.rows == call.x.rows && call.weights.cols == call.ids.cols && call.out.rows == call.x.rows &&
            call.ids.stride == call.ids.cols && call.weights.stride == call.weights.cols,
        "routes for every row, without gaps");
  if (call.x.rows == 0) return false;
  const Tables tables = tables_of(call.experts);
  const std::int64_t routes = std::min(call.x.rows, kTokens) * call.ids.cols;
  const std::int64_t width = tables.down.k;
  const std::int64_t halves = routes * (tables.gate_up.n + width + tables.down.n);
  const bool grows = scratch_.size() < static_cast<std::size_t>(halves) * sizeof(__half);
  if (grows) scratch_ = DeviceBuffer(static_cast<std::size_t>(halves) * sizeof(__half), "scratch memory of experts");
  for (std::int64_t first = 0; first < call.x.rows; first += kTokens) {
    const std::int64_t tokens = std::min(kTokens, call.x.rows - first);
    const std::int64_t m = tokens * call.ids.cols;
    const MatrixView<__half> gate_up(scratch_.as<__half>(), m, tables.gate_up.n);
    const MatrixView<__half> hidden(gate_up.data + routes * gate_up.cols, m, width);
    const MatrixView<__half> outputs(hidden.data + routes * hidden.cols, m, tables.down.n);
    const MatrixView<const std::int32_t> ids = call.ids.row_range(first, tokens);
    expert_products(tables.gate_up, call.x.row_range(first, tokens), ids.cols, ids.data, gate_up, context.stream);
    swiglu(gate_up, hidden, context.stream);
    expert_products(tables.down, hidden, 1, ids.data, outputs, context.stream);
    combine_routes(outputs, ids, call.weights.row(first).data(), call.out.row_range(first, tokens), context.stream);
  }
  return grows;
}

}  // namespace qpn8::cuda
