#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/dense_linear.hpp"
#include "qpn8/linear.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/pack.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// y = x W^T for many rows: a panel of the weight at a time is converted (dense) or dequantised (packed) to FP32 in the
/// workspace and multiplied there, so that both kinds of weight share one micro-kernel and run at the same speed.
///
/// Any m, n and k. The order of a sum is fixed: bits depend on the instruction set, not on the number of threads.
/// A workspace smaller than gemm_workspace_bytes() is Error::bad_argument that names both numbers.
/// Shapes are the caller's to check. x and y must not overlap.
void gemm(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y, Workspace& workspace,
          ThreadTeam& team);
void gemm(const PackedWeight& weight, MatrixView<const float> x, MatrixView<float> y, Workspace& workspace,
          ThreadTeam& team);

/// The least workspace a gemm over k inputs by `threads` threads needs; a larger one lets more rows share a panel.
std::size_t gemm_workspace_bytes(std::int64_t k, int threads);

}  // namespace qpn8::cpu
