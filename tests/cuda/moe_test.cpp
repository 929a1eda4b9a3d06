#include <gtest/gtest.h>

#include "cuda/gpu_test.hpp"

namespace qpn8 {
namespace {

using test::activations;
using test::floats_of;
using test::half_gaussian;
using test::planned;

class CudaExperts : public test::GpuTest {
 protected:
  static constexpr std::int64_t kExperts = 6;
  static constexpr std::int64_t kWidth = 64;
  static constexpr std::int64_t kInner = 48;

  CudaExperts() {
    for (unsigned e = 0; e < kExperts; ++e) {
      file_.add("up" + std::to_string(e), DType::f16, half_gaussian(2 * kInner, kWidth, 10 + e, 0.2F));
      file_.add("down" + std::to_string(e), DType::f16, half_gaussian(kWidth, kInner, 30 + e, 0.2F));
    }
    file_.open();
  }

  Matrix<float> run(Backend& device, Route route, const Matrix<float>& x) {
    const PlannedProjection up = planned(route, 2 * kInner, kWidth);
    const PlannedProjection down = planned(route, kWidth, kInner);
    ExpertWeights weights;
    for (int e = 0; e < kExperts; ++e) {
      const std::string number = std::to_string(e);
      weights.gate_up.push_back(device.load_linear({&up, &file_.opened(), {file_.part("up" + number)}, {}}));
      weights.down.push_back(device.load_linear({&down, &file_.opened(), {file_.part("down" + number)}, {}}));
    }
    const OwnedTensor ids = device.allocate(DType::i32, x.rows(), 2);
    const OwnedTensor route_weights = device.allocate(DType::f32, x.rows(), 2);
    const OwnedTensor logits = test::on_device(device, DType::f32, test::gaussian(x.rows(), kExperts, 77));
    device.route_experts(logits.tensor, true, ids.tensor, route_weights.tensor);
    const OwnedTensor out = device.allocate(device.activation_type(), x.rows(), kWidth);
    device.experts(weights, activations(device, x).tensor, ids.tensor, route_weights.tensor, out.tensor);
    return floats_of(device, out.tensor);
  }

  test::WeightFile file_;
};

TEST_F(CudaExperts, AreTheCpusForFewTokensAndMany) {
  for (const Route route : {Route::dense, Route::qpn8}) {
    for (const std::int64_t rows : {1, 8, 9, 150}) {
      const Matrix<float> x = half_gaussian(rows, kWidth, 5);
      EXPECT_LE(test::relative_l2(run(gpu(), route, x).view(), run(cpu(), route, x).view()), 2 * test::kHalfTolerance)
          << rows << " rows, " << (route == Route::dense ? "dense" : "packed");
    }
  }
}

}  // namespace
}  // namespace qpn8
