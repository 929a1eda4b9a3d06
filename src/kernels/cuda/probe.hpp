#pragma once

#include <cstddef>

#include "kernels/cuda/stream.hpp"

namespace qpn8::cuda {

/// Reads device memory once, whole pieces of 16 bytes, as fast as the memory gives it. `never` is an int that only data
/// made for it would change.
void read_all(const void* memory, std::size_t bytes, int* never, const Stream& stream);

}  // namespace qpn8::cuda
