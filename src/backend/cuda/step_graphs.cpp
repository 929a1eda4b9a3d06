#include "backend/cuda/step_graphs.hpp"

#include "kernels/cuda/check.hpp"

namespace qpn8::cuda {

void StepGraphs::run(const StepKey& key, const std::function<void()>& step) {
  const auto found = graphs_.find(key);
  if (found == graphs_.end()) {
    // A recorded step begins after what is queued before it; this one's first kernel might overlap with the last one.
    check_cuda(cudaStreamSynchronize(stream_.handle), "cudaStreamSynchronize");
    step();  // may clear(), if it grows memory that other steps use
    graphs_[key] = nullptr;
    return;
  }
  if (found->second == nullptr) found->second = record(step);
  check_cuda(cudaGraphLaunch(found->second, stream_.handle), "cudaGraphLaunch");
}

cudaGraphExec_t StepGraphs::record(const std::function<void()>& step) const {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamBeginCapture(stream_.handle, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    step();
  } catch (...) {
    cudaStreamEndCapture(stream_.handle, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream_.handle, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t recorded = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&recorded, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "cudaGraphInstantiate");
  return recorded;
}

void StepGraphs::clear() {
  for (const auto& [key, graph] : graphs_) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
  graphs_.clear();
}

}  // namespace qpn8::cuda
