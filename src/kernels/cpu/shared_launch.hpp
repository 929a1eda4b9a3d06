#pragma once

#include <cstdint>

#include "kernels/cpu/dense_linear.hpp"
#include "qpn8/linear.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/pack.hpp"
#include "qpn8/schedule.hpp"
#include "qpn8/thread_team.hpp"

// Products that share one hand-over of the team with something small, which alone would cost as much as it computes.
// All take 1 to kMaxPackedRows rows, and every number has the bits that the operators give one after the other.

namespace qpn8::cpu {

/// y = x W^T of a packed weight, and y_small = x V^T of a small dense one.
void qpn8_linear_and_dense(const PackedWeight& weight, const Schedule& schedule, const DenseWeightView& small,
                           MatrixView<const float> x, MatrixView<float> y, MatrixView<float> y_small,
                           Workspace& workspace, ThreadTeam& team);

/// gates = low W^T of a packed weight [n * d, k], and out = mix_streams(normed, gates), for one row: a tile's gates of
/// all streams are mixed as they come, while they are in the nearest cache. d is a multiple of kTileColumns.
void qpn8_linear_and_mix(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> low,
                         MatrixView<const float> normed, MatrixView<float> gates, MatrixView<float> out,
                         Workspace& workspace, ThreadTeam& team);

}  // namespace qpn8::cpu
