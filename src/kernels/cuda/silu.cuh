#pragma once

namespace qpn8::cuda {

/// z / (1 + e^-z), in the one way that every kernel computes it.
__device__ inline float silu(float z) { return z / (1.0F + __expf(-z)); }

}  // namespace qpn8::cuda
