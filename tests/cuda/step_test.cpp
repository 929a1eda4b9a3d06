#include <gtest/gtest.h>

#include <cmath>

#include "cuda/gpu_test.hpp"

// What a decode step does in one launch has the bits of the operators that it stands for.

namespace qpn8 {
namespace {

using test::activations;
using test::floats_of;
using test::half_gaussian;
using test::planned;
using test::relative_l2;
using test::same_bits;
using test::WeightFile;

class CudaStep : public test::GpuTest {
 protected:
  struct Loaded {
    WeightFile file;
    std::unique_ptr<Linear> on_gpu;
    std::unique_ptr<Linear> on_cpu;
  };

  /// A weight of two parts of n / 2 channels each.
  std::unique_ptr<Loaded> load(Route route, std::int64_t n, std::int64_t k, bool gated) {
    auto loaded = std::make_unique<Loaded>();
    loaded->file.add("a", DType::f16, half_gaussian(n / 2, k, 5, 0.05F));
    loaded->file.add("b", DType::f16, half_gaussian(n / 2, k, 6, 0.05F));
    const Checkpoint& checkpoint = loaded->file.open();
    const PlannedProjection plan = planned(route, n, k);
    LinearSource source = {&plan, &checkpoint, {loaded->file.part("a"), loaded->file.part("b")}, {}};
    source.gated = gated;
    loaded->on_gpu = gpu().load_linear(source);
    loaded->on_cpu = cpu().load_linear(source);
    return loaded;
  }

  struct Stream {
    OwnedTensor hidden;
    OwnedTensor delta;
    OwnedTensor normed;
    OwnedTensor norm;

    ResidualStream get() const { return {.hidden = hidden.tensor, .delta = delta.tensor, .normed = normed.tensor}; }
    RowNorm row_norm() const { return {norm.tensor, 1e-6F}; }
  };

  static Stream stream(Backend& device, const Matrix<float>& x) {
    return {.hidden = activations(device, x),
            .delta = device.allocate(device.activation_type(), x.rows(), x.cols()),
            .normed = device.allocate(device.activation_type(), x.rows(), x.cols()),
            .norm = test::on_device(device, DType::f32, test::gaussian(1, x.cols(), 3))};
  }

  static Matrix<float> first_rows(const Matrix<float>& x, std::int64_t rows) {
    Matrix<float> first(rows, x.cols());
    std::copy_n(x.values().begin(), first.values().size(), first.values().begin());
    return first;
  }

  /// `run` on the first 1, 2, 5 and 8 rows of x: the rows' bits do not depend on their number. Returns those of 8.
  template <class Run>
  Matrix<float> expect_rows_apart(const Matrix<float>& x, const std::string& what, const Run& run) {
    Matrix<float> eight = run(gpu(), first_rows(x, 8));
    for (const std::int64_t rows : {1, 2, 5}) {
      EXPECT_TRUE(same_bits<float>(run(gpu(), first_rows(x, rows)).view(), eight.view().row_range(0, rows)))
          << what << ", " << rows << " rows";
    }
    return eight;
  }

  static std::string describe(Route route, std::int64_t n, std::int64_t k) {
    return std::string(route == Route::qpn8 ? "qpn8" : "dense") + " K=" + std::to_string(k) + " N=" + std::to_string(n);
  }
};

constexpr std::array kRoutes = {Route::dense, Route::qpn8};
// Of k in one block and in several, resident and streamed, with and without steps for every warp.
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 7> kShapes = {
    {{64, 64}, {96, 2048}, {256, 4096}, {1024, 8192}, {1536, 2560}, {4096, 6144}, {2048, 64}}};

TEST_F(CudaStep, ProductsOfNormalisedRowsAreTheCpus) {
  for (const Route route : kRoutes) {
    for (const auto& [k, n] : kShapes) {
      const auto weight = load(route, n, k, false);
      const auto run = [&](Backend& device, const Matrix<float>& x) {
        const Stream s = stream(device, x);
        ResidualStream residual = s.get();
        const OwnedTensor y = device.allocate(device.activation_type(), x.rows(), n);
        device.linear_normalised(residual, s.row_norm(), &device == &gpu() ? *weight->on_gpu : *weight->on_cpu,
                                 y.tensor);
        return floats_of(device, y.tensor);
      };
      const Matrix<float> x = half_gaussian(8, k, 4, 3.0F);
      const std::string what = describe(route, n, k);
      const Matrix<float> found = expect_rows_apart(x, what, run);
      EXPECT_LE(relative_l2(found.view(), run(cpu(), x).view()), 2 * test::kHalfTolerance) << what;
    }
  }
}

TEST_F(CudaStep, GatedProductsAreTheCpus) {
  for (const Route route : kRoutes) {
    for (const auto& [k, n] : kShapes) {
      const auto weight = load(route, n, k, true);
      const auto run = [&](Backend& device, const Matrix<float>& x) {
        const Stream s = stream(device, x);
        ResidualStream residual = s.get();
        const OwnedTensor gate_up = device.allocate(device.activation_type(), x.rows(), n);
        const OwnedTensor y = device.allocate(device.activation_type(), x.rows(), n / 2);
        device.linear_gated(residual, s.row_norm(), &device == &gpu() ? *weight->on_gpu : *weight->on_cpu,
                            gate_up.tensor, y.tensor);
        return floats_of(device, y.tensor);
      };
      const Matrix<float> x = half_gaussian(8, k, 4, 3.0F);
      const std::string what = describe(route, n, k);
      const Matrix<float> found = expect_rows_apart(x, what, run);
      EXPECT_LE(relative_l2(found.view(), run(cpu(), x).view()), 3 * test::kHalfTolerance) << what;
    }
  }
}

TEST_F(CudaStep, AGatedWeightMultipliesLikeAnyOther) {
  for (const auto& [k, n] : kShapes) {
    const auto plain = load(Route::qpn8, n, k, false);
    const auto gated = load(Route::qpn8, n, k, true);
    for (const std::int64_t rows : {1, 8, 40}) {
      const OwnedTensor x = activations(gpu(), half_gaussian(rows, k, 4));
      const OwnedTensor y = gpu().allocate(DType::f32, rows, n);
      gpu().linear(*plain->on_gpu, x.tensor, y.tensor);
      const Matrix<float> expected = floats_of(gpu(), y.tensor);
      gpu().linear(*gated->on_gpu, x.tensor, y.tensor);
      const std::string what = describe(Route::qpn8, n, k) + ", " + std::to_string(rows) + " rows";
      if (rows <= 8) {
        EXPECT_TRUE(same_bits<float>(floats_of(gpu(), y.tensor).view(), expected.view())) << what;
      } else {
        EXPECT_LE(relative_l2(floats_of(gpu(), y.tensor).view(), expected.view()), 1e-6) << what;
      }
    }
  }
}

TEST_F(CudaStep, AProductAddedToTheStreamIsRoundedAndThenAdded) {
  for (const Route route : kRoutes) {
    for (const auto& [k, n] : kShapes) {
      const auto weight = load(route, n, k, false);
      for (const std::int64_t rows : {1, 3, 8, 12}) {
        const Matrix<float> x = half_gaussian(rows, k, 4);
        const Matrix<float> before = half_gaussian(rows, n, 7, 2.0F);
        const Stream s = stream(gpu(), before);
        const OwnedTensor in = activations(gpu(), x);
        const OwnedTensor y = gpu().allocate(DType::f16, rows, n);
        gpu().linear(*weight->on_gpu, in.tensor, y.tensor);
        Matrix<float> expected = floats_of(gpu(), y.tensor);
        for (std::size_t i = 0; i < expected.values().size(); ++i) {
          expected.values()[i] = to_float(to_half(before.values()[i] + expected.values()[i]));
        }
        ResidualStream residual = s.get();
        gpu().linear_added(*weight->on_gpu, in.tensor, residual);
        gpu().normalise(residual, s.row_norm());
        EXPECT_TRUE(same_bits<float>(floats_of(gpu(), residual.hidden).view(), expected.view()))
            << describe(route, n, k) << ", " << rows << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace qpn8
