#pragma once

#include <cstdint>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// How a row's experts are chosen and weighed.
struct ScoreRule {
  std::span<const float> bias;  ///< added to a score for the choice alone; empty: none
  bool ids_given = false;       ///< the ids are there already and only weighed
  float scale = 1.0F;           ///< multiplies the weights, which sum to 1 before
};

/// An expert's score is sqrt(log(1 + e^logit)). ids[t] becomes the ids.cols experts with the largest score plus bias,
/// in falling order, ties to the lower id; weights[t] their scores over the scores' sum, times scale. ids.cols is at
/// most logits.cols. NaN counts as the largest score, and makes the weights NaN.
void score_experts(MatrixView<const float> logits, const ScoreRule& rule, MatrixView<std::int32_t> ids,
                   MatrixView<float> weights, ThreadTeam& team);

/// By its formula, in FP64, with a full sort.
void score_experts_reference(MatrixView<const float> logits, const ScoreRule& rule, MatrixView<std::int32_t> ids,
                             MatrixView<double> weights);

}  // namespace qpn8::cpu
