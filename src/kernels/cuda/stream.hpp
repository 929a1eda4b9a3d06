#pragma once

#include <cuda_runtime_api.h>

namespace qpn8::cuda {

/// Where kernels are queued. They run in the order of the calls.
struct Stream {
  cudaStream_t handle = nullptr;
  /// Compute capability 9.0 on: a kernel is launched before the one before it has ended and waits for it itself, so
  /// that its launch costs nothing (programmatic dependent launch).
  bool overlaps = false;
};

}  // namespace qpn8::cuda
