#pragma once

#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// out[t] = x[t] / sqrt(mean(x[t]^2) + eps) * weight, the mean accumulated in FP32. out may be x.
void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps, MatrixView<float> out,
              ThreadTeam& team);

/// residual += delta, then out = rms_norm(residual), in one pass over the memory. out must not be residual or delta.
void add_rms_norm(MatrixView<float> residual, MatrixView<const float> delta, std::span<const float> weight, float eps,
                  MatrixView<float> out, ThreadTeam& team);

/// In place: each run of weight.size() values of a row is normalised by itself; x.cols is a multiple of it.
void head_rms_norm(MatrixView<float> x, std::span<const float> weight, float eps, ThreadTeam& team);

/// rms_norm by its formula, in FP64.
void rms_norm_reference(MatrixView<const float> x, std::span<const float> weight, float eps, MatrixView<double> out);

}  // namespace qpn8::cpu
