#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace qpn8::cuda {

/// Throws unless a CUDA call succeeded: Error::missing_capability in one line that names the call, where it was made
/// and what to do.
void check_cuda(cudaError_t status, const char* call, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// The same for the kernel that was launched last; what it does later is found by the next call that waits for it.
void check_launch(const char* kernel, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// Lets a kernel about to be launched have that much shared memory beside what it declares: what is more than every
/// kernel may have must be asked for.
void allow_shared_memory(const void* kernel, std::size_t dynamic_bytes, const char* name);

}  // namespace qpn8::cuda
