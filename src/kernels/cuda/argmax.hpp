#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

/// Bytes of scratch memory that argmax of that many rows needs.
std::size_t argmax_scratch_bytes(std::int64_t rows);

/// out[t] = index of the largest value of row t, ties to the lower index; -1 if a value is not finite.
void argmax(MatrixView<const float> x, void* scratch, std::int32_t* out, const Stream& stream);

}  // namespace qpn8::cuda
