#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>

#include "backend/backend.hpp"
#include "kernels/cuda/stream.hpp"

namespace qpn8::cuda {

/// What a recorded step depends on beside the contents of device memory.
struct StepKey {
  std::int64_t rows = 0;
  std::int64_t spans = 0;   ///< sequences: where each has one row, attention prepares their heads itself
  std::int64_t splits = 0;  ///< of attention: what the furthest position of the batch is rounded up to
  int variant = 0;          ///< the caller's
  auto operator<=>(const StepKey&) const = default;
};

/// The recorded steps of one stream. Everything queued before a step has ended when its first kernel begins. A step
/// runs as it is the first time its key is seen, so that what it allocates is there; the second time it is recorded,
/// and from then on replayed.
class StepGraphs {
 public:
  explicit StepGraphs(const Stream& stream) : stream_(stream) {}
  ~StepGraphs() { clear(); }
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  void run(const StepKey& key, const std::function<void()>& step);

  /// Forgets all: what they were recorded with has moved.
  void clear();

 private:
  cudaGraphExec_t record(const std::function<void()>& step) const;

  Stream stream_;
  std::map<StepKey, cudaGraphExec_t> graphs_;  // null: seen once
};

}  // namespace qpn8::cuda
