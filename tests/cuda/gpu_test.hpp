#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "backend/cpu_backend.hpp"
#include "backend/cuda_backend.hpp"
#include "backend/weight_file.hpp"
#include "qpn8/half.hpp"
#include "support/numbers.hpp"

namespace qpn8::test {

/// A test that needs a GPU, with a backend on it and the CPU's as the reference; skipped where there is none.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const CudaDevice device = find_cuda_device();
    if (!device.hardware) GTEST_SKIP() << "needs a GPU: " << device.absence;
    gpu_ = make_cuda_backend({.threads = 2});
    cpu_ = make_cpu_backend({.threads = 2});
  }

  Backend& gpu() { return *gpu_; }
  Backend& cpu() { return *cpu_; }

 private:
  std::unique_ptr<Backend> gpu_;
  std::unique_ptr<Backend> cpu_;
};

/// The values as a device's activations: FP16 on a GPU, FP32 on a CPU.
inline OwnedTensor activations(Backend& backend, const Matrix<float>& values) {
  if (backend.activation_type() == DType::f32) return on_device(backend, DType::f32, values);
  Matrix<Half> halves(values.rows(), values.cols());
  for (std::size_t i = 0; i < values.values().size(); ++i) halves.values()[i] = to_half(values.values()[i]);
  return on_device(backend, DType::f16, halves);
}

/// A tensor of floats or halves, as floats.
inline Matrix<float> floats_of(Backend& backend, const Tensor& tensor) {
  if (tensor.dtype == DType::f32) return on_host<float>(backend, tensor);
  const Matrix<Half> halves = on_host<Half>(backend, tensor);
  Matrix<float> values(tensor.rows, tensor.cols);
  for (std::size_t i = 0; i < values.values().size(); ++i) values.values()[i] = to_float(halves.values()[i]);
  return values;
}

/// Gaussian numbers that FP16 holds, so that a GPU and a CPU begin with the same.
inline Matrix<float> half_gaussian(std::int64_t rows, std::int64_t cols, unsigned seed, float deviation = 1.0F) {
  return rounded(gaussian(rows, cols, seed, deviation), DType::f16);
}

/// What FP16 results may differ by from FP32 ones: half an ulp in the mean, a few roundings in a row.
inline constexpr double kHalfTolerance = 6e-4;

}  // namespace qpn8::test
