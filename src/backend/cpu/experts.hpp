#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cpu/linear.hpp"

namespace qpn8::cpu {

/// Runs the experts of a layer on the rows that were routed to them. Keeps its memory between calls.
class ExpertRunner {
 public:
  /// out[t] = sum over j of weights[t][j] * down_e(swiglu(gate_up_e(x[t]))), e = ids[t][j], in order of rising e. An
  /// expert's rows go through its products together. A row's ids are distinct and name experts.
  void run(const ExpertWeights& experts, MatrixView<const float> x, MatrixView<const std::int32_t> ids,
           MatrixView<const float> weights, MatrixView<float> out, const ProductContext& context);

 private:
  /// Sorts the routes by expert, rows rising within one.
  void group(std::size_t experts, MatrixView<const std::int32_t> ids, MatrixView<const float> weights);

  std::vector<std::size_t> first_;  ///< expert e owns the routes [first_[e], first_[e + 1])
  std::vector<std::int32_t> rows_;  ///< of each route
  std::vector<float> weights_;      ///< of each route
  Scratch inputs_;
  Scratch gate_up_;
  Scratch hidden_;
  Scratch outputs_;
};

}  // namespace qpn8::cpu
