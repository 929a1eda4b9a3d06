#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

/// out[t] = x[t] / sqrt(mean(x[t]^2) + eps) * weight, FP32 inside; weight has x.cols numbers. out may be x.
void rms_norm(MatrixView<const __half> x, const float* weight, float eps, MatrixView<__half> out, const Stream& stream);

/// residual += delta (rounded to FP16), then out = rms_norm(residual).
void add_rms_norm(MatrixView<__half> residual, MatrixView<const __half> delta, const float* weight, float eps,
                  MatrixView<__half> out, const Stream& stream);

}  // namespace qpn8::cuda
