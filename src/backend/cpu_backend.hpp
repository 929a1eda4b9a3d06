#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "backend/backend.hpp"
#include "kernels/cpu/isa.hpp"
#include "qpn8/linear.hpp"

namespace qpn8 {

struct CpuBackendOptions {
  int threads = 0;                                         ///< 0: one a processor that this process may use
  std::size_t workspace_bytes = Workspace::kDefaultBytes;  ///< for products of more than kMaxPackedRows rows
  std::optional<cpu::Isa> isa = std::nullopt;              ///< the machine's best if absent; holds for the process
};

/// The threads that an option of that many means: itself, or one a processor for 0. Error::bad_argument if negative.
int cpu_threads(int wanted);

/// The backend of the host's processors: activations are FP32, device memory is host memory.
///
/// Error::bad_argument for a negative number of threads; Error::missing_capability if the machine lacks the instruction
/// set.
std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options);

}  // namespace qpn8
