#pragma once

#include <cstdint>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// The ids.cols largest of softmax(logits[t]) for every row: ids and probabilities in order of falling logit, ties to
/// the lower id. `normalise` divides the chosen ones by their sum. ids.cols is at most logits.cols; weights is as
/// large as ids.
/// NaN counts as the largest logit: the ids are in range and distinct all the same, and the weights are NaN.
void route_experts(MatrixView<const float> logits, bool normalise, MatrixView<std::int32_t> ids,
                   MatrixView<float> weights, ThreadTeam& team);

/// By a full sort and a softmax in FP64; finite logits only.
void route_experts_reference(MatrixView<const float> logits, bool normalise, MatrixView<std::int32_t> ids,
                             MatrixView<double> weights);

}  // namespace qpn8::cpu
