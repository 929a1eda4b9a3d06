#pragma once

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

inline constexpr std::int64_t kMaxExperts = 1024;

/// The ids.cols largest of softmax(logits[t]) for every row, in order of falling logit, ties to the lower id; NaN
/// counts as the largest. `normalise` divides the chosen ones by their sum. At most kMaxExperts columns.
void route_experts(MatrixView<const float> logits, bool normalise, MatrixView<std::int32_t> ids,
                   MatrixView<float> weights, const Stream& stream);

}  // namespace qpn8::cuda
