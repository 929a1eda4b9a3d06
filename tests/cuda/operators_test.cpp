#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "cuda/gpu_test.hpp"

namespace qpn8 {
namespace {

using test::activations;
using test::floats_of;
using test::half_gaussian;
using test::on_device;
using test::on_host;
using test::relative_l2;

class CudaOperators : public test::GpuTest {
 protected:
  /// Runs the same calls on both backends and compares what they return.
  void expect_same(const std::function<Matrix<float>(Backend&)>& run, const std::string& what,
                   double tolerance = test::kHalfTolerance) {
    const Matrix<float> expected = run(cpu());
    EXPECT_LE(relative_l2(run(gpu()).view(), expected.view()), tolerance) << what;
  }
};

TEST_F(CudaOperators, NormsAreTheCpus) {
  for (const std::int64_t cols : {1, 7, 64, 200, 4096, 5120, 12000}) {
    for (const std::int64_t rows : {1, 9}) {
      const std::string what = std::to_string(rows) + " x " + std::to_string(cols);
      const Matrix<float> x = half_gaussian(rows, cols, 1, 3.0F);
      const Matrix<float> delta = half_gaussian(rows, cols, 2, 3.0F);
      const Matrix<float> weight = test::gaussian(1, cols, 3);
      expect_same(
          [&](Backend& device) {
            const OwnedTensor in = activations(device, x);
            device.rms_norm(in.tensor, on_device(device, DType::f32, weight).tensor, 1e-5F, in.tensor);
            return floats_of(device, in.tensor);
          },
          "rms_norm in place " + what);
      expect_same(
          [&](Backend& device) {
            const OwnedTensor residual = activations(device, x);
            const OwnedTensor out = device.allocate(device.activation_type(), rows, cols);
            device.add_rms_norm(residual.tensor, activations(device, delta).tensor,
                                on_device(device, DType::f32, weight).tensor, 1e-5F, out.tensor);
            const Matrix<float> sums = floats_of(device, residual.tensor);
            Matrix<float> both(2 * rows, cols);
            const Matrix<float> normed = floats_of(device, out.tensor);
            std::copy(sums.values().begin(), sums.values().end(), both.values().begin());
            std::copy(normed.values().begin(), normed.values().end(),
                      both.values().begin() + static_cast<std::ptrdiff_t>(sums.values().size()));
            return both;
          },
          "add_rms_norm " + what);
    }
  }
}

TEST_F(CudaOperators, HeadNormsAndRotationsAreTheCpus) {
  for (const std::int64_t head_dim : {4, 20, 64, 128, 256}) {
    for (const std::int64_t rotated : {head_dim, head_dim / 2}) {
      for (const RopePairing pairing : {RopePairing::halves, RopePairing::interleaved}) {
        expect_same(
            [&](Backend& device) {
              const OwnedTensor x = activations(device, half_gaussian(5, 3 * head_dim, 1));
              Matrix<std::int32_t> places(5, 1);
              for (std::int32_t i = 0; i < 5; ++i) places(i, 0) = i * i * i * 60;
              const OwnedTensor positions = on_device(device, DType::i32, places);
              Matrix<float> rates(1, rotated / 2);
              for (std::int64_t i = 0; i < rates.cols(); ++i) rates(0, i) = std::pow(0.7F, static_cast<float>(i));
              const OwnedTensor angles = device.allocate(DType::f32, 5, rotated);
              device.rope_angles(positions.tensor, on_device(device, DType::f32, rates).tensor, 1.5F, angles.tensor);
              const OwnedTensor weight = on_device(device, DType::f32, test::gaussian(1, head_dim, 3));
              device.head_rms_norm(x.tensor, weight.tensor, 1e-6F);
              device.rope(x.tensor, head_dim, angles.tensor, pairing);
              return floats_of(device, x.tensor);
            },
            "heads of " + std::to_string(head_dim) + " rotated by " + std::to_string(rotated));
      }
    }
  }
}

TEST_F(CudaOperators, RowsAreFoundAndGated) {
  Matrix<std::int32_t> ids(4, 1);
  ids(0, 0) = 8;
  ids(1, 0) = 0;
  ids(2, 0) = 8;
  ids(3, 0) = 3;
  for (const std::int64_t cols : {1, 130, 1000}) {
    const Matrix<float> table = half_gaussian(9, 2 * cols, 1, 4.0F);
    expect_same(
        [&](Backend& device) {
          const DType type = device.activation_type();
          const OwnedTensor found = device.allocate(type, 4, 2 * cols);
          const OwnedTensor rows = on_device(device, DType::i32, ids);
          device.embed(activations(device, table).tensor, rows.tensor, found.tensor);
          const OwnedTensor out = device.allocate(type, 4, cols);
          device.swiglu(found.tensor, 0.0F, out.tensor);
          return floats_of(device, out.tensor);
        },
        std::to_string(cols));
  }
}

TEST_F(CudaOperators, ExpertsAreChosenAsOnTheCpu) {
  for (const std::int64_t experts : {1, 8, 40, 512}) {
    Matrix<float> logits = test::gaussian(6, experts, 4, 2.0F);
    if (experts > 4) logits(2, 1) = logits(2, 3) = logits(2, 4) = 9.0F;  // a tie
    const std::int64_t chosen = std::min<std::int64_t>(experts, 8);
    for (const bool normalise : {false, true}) {
      std::vector<Matrix<std::int32_t>> ids;
      expect_same(
          [&](Backend& device) {
            const OwnedTensor found = device.allocate(DType::i32, 6, chosen);
            const OwnedTensor weights = device.allocate(DType::f32, 6, chosen);
            device.route_experts(on_device(device, DType::f32, logits).tensor, normalise, found.tensor, weights.tensor);
            ids.push_back(on_host<std::int32_t>(device, found.tensor));
            return on_host<float>(device, weights.tensor);
          },
          std::to_string(experts), 1e-5);
      EXPECT_TRUE(test::same_bits<std::int32_t>(ids[0].view(), ids[1].view())) << experts;
    }
  }
}

TEST_F(CudaOperators, TheLargestLogitAndWhatIsNotFiniteAreFound) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t cols : {1, 5, 257, 151936}) {
    Matrix<float> x(7, cols);
    for (std::int64_t row = 0; row < 7; ++row) {
      const Matrix<float> values = test::gaussian(1, cols, 20 + static_cast<unsigned>(row));
      std::copy(values.values().begin(), values.values().end(), x.view().row(row).begin());
    }
    for (std::int64_t i = 0; i < cols; ++i) x(1, i) = -5.0F;  // all tied, and negative
    x(2, cols / 2) = kNan;
    x(3, cols - 1) = -kInfinity;
    x(4, 0) = kInfinity;
    x(5, cols / 2) = x(5, cols - 1) = 100.0F;
    const auto found_by = [&](Backend& device, bool finite) {
      const OwnedTensor in = on_device(device, DType::f32, x);
      const OwnedTensor out = device.allocate(DType::i32, 7, 1);
      if (finite) {
        device.find_non_finite(in.tensor, out.tensor);
      } else {
        device.argmax(in.tensor, out.tensor);
      }
      return on_host<std::int32_t>(device, out.tensor);
    };
    for (const bool finite : {false, true}) {
      const Matrix<std::int32_t> on_gpu = found_by(gpu(), finite);
      const Matrix<std::int32_t> on_cpu = found_by(cpu(), finite);
      EXPECT_TRUE(test::same_bits<std::int32_t>(on_gpu.view(), on_cpu.view())) << cols << (finite ? " finite" : "");
    }
  }
}

}  // namespace
}  // namespace qpn8
