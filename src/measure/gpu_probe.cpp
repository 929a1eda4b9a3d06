#include "measure/gpu_probe.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "backend/cuda/memory.hpp"
#include "backend/cuda/own_stream.hpp"
#include "backend/cuda_backend.hpp"
#include "base/random.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/cuda/gemm.hpp"
#include "kernels/cuda/probe.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using cuda::check_cuda;
using cuda::DeviceBuffer;
using cuda::OwnStream;

void require_at_hand(const Hardware& hardware) {
  const CudaDevice device = find_cuda_device();
  if (device.hardware && to_string(*device.hardware) == to_string(hardware)) return;
  throw Error(Error::unsupported, to_string(hardware) + ": it is not the GPU at hand and cannot be measured");
}

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class GpuProbe : public MachineProbe {
 public:
  GpuProbe() : gemm_(stream_.get()), never_(sizeof(int), "a probe") {}

  double read_bytes_per_s(std::int64_t bytes) override {
    constexpr std::int64_t kSampleBytes = std::int64_t{2} << 30;  // half a millisecond
    const auto size = static_cast<std::size_t>(bytes);
    if (memory_.size() < size) {
      memory_ = DeviceBuffer();
      memory_ = DeviceBuffer(size, "a probe");
      memory_.clear();
    }
    const std::int64_t reads = std::max<std::int64_t>(1, kSampleBytes / std::max<std::int64_t>(bytes, 1));
    const double seconds = seconds_on_device([&] {
      for (std::int64_t i = 0; i < reads; ++i) cuda::read_all(memory_.data(), size, never_.as<int>(), stream_.get());
    });
    return static_cast<double>(bytes * reads) / seconds;
  }

  double flop_per_s() override {
    constexpr std::int64_t kSide = 8192;
    constexpr std::size_t kBytes = kSide * kSide * sizeof(std::uint16_t);
    if (factors_.size() == 0) {
      factors_ = DeviceBuffer(2 * kBytes, "a probe");
      product_ = DeviceBuffer(kBytes, "a probe");
      fill_factors();
    }
    const cuda::DenseWeight weight = {factors_.as<__half>(), kSide, kSide};
    const MatrixView<const __half> x(factors_.as<__half>() + kSide * kSide, kSide, kSide);
    const cuda::ProductOutput y = {product_.data(), DType::f16, kSide, kSide};
    return 2.0 * kSide * kSide * kSide / seconds_on_device([&] { gemm_.multiply(weight, x, false, y); });
  }

 private:
  /// Numbers of every sign and size near 1: a GPU multiplies zeros faster.
  void fill_factors() const {
    std::vector<std::uint16_t> block(std::size_t{1} << 20);
    Random random(1);
    for (std::uint16_t& half : block) half = static_cast<std::uint16_t>(0x3000 + random.below(0x1000));
    for (std::size_t i = 0; i < block.size(); i += 2) block[i] |= 0x8000;
    const std::size_t bytes = block.size() * sizeof(block.front());
    for (std::size_t at = 0; at < factors_.size(); at += bytes) {
      check_cuda(cudaMemcpy(factors_.data() + at, block.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
  }

  template <class Work>
  double seconds_on_device(const Work& work) {
    check_cuda(cudaEventRecord(begin_.get(), stream_.get().handle), "cudaEventRecord");
    work();
    check_cuda(cudaEventRecord(end_.get(), stream_.get().handle), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }

  OwnStream stream_;
  Event begin_;
  Event end_;
  cuda::Gemm gemm_;
  DeviceBuffer never_;
  DeviceBuffer memory_;
  DeviceBuffer factors_;
  DeviceBuffer product_;
};

}  // namespace

std::unique_ptr<MachineProbe> make_gpu_probe(const Hardware& hardware) {
  require_at_hand(hardware);
  return std::make_unique<GpuProbe>();
}

std::int64_t gpu_cache_bytes(const Hardware& hardware) {
  require_at_hand(hardware);
  int bytes = 0;
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0), "cudaDeviceGetAttribute");
  return bytes;
}

}  // namespace qpn8
