#pragma once

#include <cstdint>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// angles[t] = the cosines of positions[t] * frequencies, then the sines, each times scale; angles.cols is twice the
/// number of frequencies. The angle itself is an FP32 product, as in the float32 models that the weights come from:
/// at position 100,000 a better angle would be a different one.
void rope_angles(std::span<const std::int32_t> positions, std::span<const float> frequencies, float scale,
                 MatrixView<float> angles, ThreadTeam& team);

/// In place: rotates the first angles.cols dimensions of every head of x [rows, heads * head_dim] by the row's angles.
/// Pairs are (i, i + d/2) of those d dimensions.
void rope_halves(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles, ThreadTeam& team);

/// Pairs are (2 i, 2 i + 1).
void rope_interleaved(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles, ThreadTeam& team);

/// In place: rotates the last angles.cols dimensions of every head, in pairs (2 i, 2 i + 1).
void rope_tails(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles, ThreadTeam& team);

/// Both rotations by their formula, in FP64: `apart` is the distance of a pair's members (d/2 or 1).
void rope_reference(MatrixView<double> x, std::int64_t head_dim, MatrixView<const float> angles, std::int64_t apart);

}  // namespace qpn8::cpu
