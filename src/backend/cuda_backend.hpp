#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "backend/backend.hpp"
#include "qpn8/linear.hpp"

namespace qpn8 {

/// The GPU that a process computes on, or why there is none.
struct CudaDevice {
  std::optional<Hardware> hardware;
  std::string absence;  ///< "this qpn8 is built without CUDA", or what the driver says
};

/// Looks at the first visible GPU (CUDA_VISIBLE_DEVICES chooses); throws nothing, so that `auto` can go on without.
CudaDevice find_cuda_device();

struct CudaBackendOptions {
  int threads = 0;                                         ///< for packing on the host; 0: one a processor
  std::size_t workspace_bytes = Workspace::kDefaultBytes;  ///< for products of more than kMaxPackedRows rows
};

/// The backend of the first visible GPU: activations and dense weights are FP16, sums FP32.
///
/// Weights of type BF16 or F32 are rounded to FP16 when they are loaded; one beyond FP16's range is Error::bad_value
/// naming the tensor. Operators are queued on one stream and the host waits in read() alone.
/// Error::missing_capability if there is no GPU, or no room on it.
std::unique_ptr<Backend> make_cuda_backend(const CudaBackendOptions& options);

}  // namespace qpn8
