#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

/// out[i] = in[rows[i]]: an embedding, or the rows that get logits. Indices are in range and in device memory, as is
/// everything.
void gather_rows(MatrixView<const __half> in, const std::int32_t* rows, MatrixView<__half> out, const Stream& stream);

/// out = silu(gate) * up for gate_up [rows, 2 I], gate columns first; out [rows, I].
void swiglu(MatrixView<const __half> gate_up, MatrixView<__half> out, const Stream& stream);

/// y[t] = bias, for a product that is added to it.
void fill_rows(const float* bias, MatrixView<__half> y, const Stream& stream);
void fill_rows(const float* bias, MatrixView<float> y, const Stream& stream);

/// out[t] = index of the first infinity or NaN of row t, or -1.
void find_non_finite(MatrixView<const __half> x, std::int32_t* out, const Stream& stream);
void find_non_finite(MatrixView<const float> x, std::int32_t* out, const Stream& stream);

}  // namespace qpn8::cuda
