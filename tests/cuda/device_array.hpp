#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "kernels/cuda/check.hpp"

namespace qpn8::test {

/// Elements in device memory, for tests of single kernels. Copies wait for everything before them.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) { set(values); }

  /// Bytes of 0xff: NaN as FP16 and as FP32.
  explicit DeviceArray(std::size_t count) : count_(count) {
    cuda::check_cuda(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMalloc");
    cuda::check_cuda(cudaMemset(data_, 0xff, count * sizeof(T)), "cudaMemset");
    cuda::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() { return data_; }

  void set(std::span<const T> values) {
    cuda::check_cuda(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  std::vector<T> get() const {
    std::vector<T> values(count_);
    cuda::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    cuda::check_cuda(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// A test of kernels alone; skipped where there is no GPU.
class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "needs a GPU";
    cuda::check_cuda(cudaStreamCreate(&stream_), "cudaStreamCreate");
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  /// What `work` queues on the stream, as one graph, launched and waited for as often as called.
  template <class Work>
  cudaGraphExec_t record(const Work& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cuda::check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    work();
    cuda::check_cuda(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    cuda::check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
    return executable;
  }

  cudaStream_t stream_ = nullptr;
};

}  // namespace qpn8::test
