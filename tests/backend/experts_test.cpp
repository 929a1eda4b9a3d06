#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backend/cpu_backend.hpp"
#include "backend/weight_file.hpp"

namespace qpn8 {
namespace {

using test::gaussian;
using test::on_device;
using test::on_host;
using test::relative_l2;
using test::same_bits;

constexpr std::int64_t kWidth = 64;   // D
constexpr std::int64_t kHidden = 32;  // I

struct Routes {
  Matrix<std::int32_t> ids;
  Matrix<float> weights;
};

/// Distinct experts for every row, in no particular order.
Routes random_routes(std::int64_t rows, std::int64_t count, std::int64_t experts, unsigned seed) {
  std::mt19937 random(seed);
  Routes routes{Matrix<std::int32_t>(rows, count), gaussian(rows, count, seed)};
  std::vector<std::int32_t> all(static_cast<std::size_t>(experts));
  for (std::size_t e = 0; e < all.size(); ++e) all[e] = static_cast<std::int32_t>(e);
  for (std::int64_t t = 0; t < rows; ++t) {
    std::shuffle(all.begin(), all.end(), random);
    std::copy_n(all.begin(), count, routes.ids.view().row(t).begin());
  }
  return routes;
}

class Experts : public testing::TestWithParam<Route> {
 protected:
  static constexpr std::int64_t kExperts = 7;

  void SetUp() override {
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const auto seed = static_cast<unsigned>(10 * e);
      gate_up_.push_back(test::rounded(gaussian(2 * kHidden, kWidth, seed, 0.2F), DType::f16));
      down_.push_back(test::rounded(gaussian(kWidth, kHidden, seed + 1, 0.2F), DType::f16));
      file_.add("gate_up" + std::to_string(e), DType::f16, gate_up_.back());
      file_.add("down" + std::to_string(e), DType::f16, down_.back());
    }
    checkpoint_ = &file_.open();
  }

  ExpertWeights load(Backend& backend) {
    ExpertWeights experts;
    const PlannedProjection gate_up = test::planned(GetParam(), 2 * kHidden, kWidth);
    const PlannedProjection down = test::planned(GetParam(), kWidth, kHidden);
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const std::string name = std::to_string(e);
      experts.gate_up.push_back(backend.load_linear(
          {.plan = &gate_up, .checkpoint = checkpoint_, .parts = {file_.part("gate_up" + name)}, .bias = {}}));
      experts.down.push_back(backend.load_linear(
          {.plan = &down, .checkpoint = checkpoint_, .parts = {file_.part("down" + name)}, .bias = {}}));
    }
    return experts;
  }

  static Matrix<float> run(Backend& backend, const ExpertWeights& experts, const Matrix<float>& x,
                           const Routes& routes) {
    const OwnedTensor input = on_device(backend, DType::f32, x);
    const OwnedTensor ids = on_device(backend, DType::i32, routes.ids);
    const OwnedTensor weights = on_device(backend, DType::f32, routes.weights);
    const OwnedTensor out = on_device(backend, DType::f32, gaussian(x.rows(), kWidth, 99));
    backend.experts(experts, input.tensor, ids.tensor, weights.tensor, out.tensor);
    return on_host<float>(backend, out.tensor);
  }

  /// By the formula, in FP64.
  Matrix<double> expected(const Matrix<float>& x, const Routes& routes) const {
    Matrix<double> out(x.rows(), kWidth);
    for (std::int64_t t = 0; t < x.rows(); ++t) {
      for (std::int64_t j = 0; j < routes.ids.cols(); ++j) {
        const auto e = static_cast<std::size_t>(routes.ids(t, j));
        Matrix<float> row(1, kWidth);
        std::copy_n(x.view().row(t).begin(), kWidth, row.values().begin());
        const Matrix<double> gate_up = test::exact_product(row, gate_up_[e]);
        for (std::int64_t n = 0; n < kWidth; ++n) {
          double sum = 0;
          for (std::int64_t i = 0; i < kHidden; ++i) {
            const double gate = gate_up(0, i);
            sum += gate / (1 + std::exp(-gate)) * gate_up(0, kHidden + i) * down_[e](n, i);
          }
          out(t, n) += routes.weights(t, j) * sum;
        }
      }
    }
    return out;
  }

  test::WeightFile file_;
  std::vector<Matrix<float>> gate_up_;
  std::vector<Matrix<float>> down_;
  const Checkpoint* checkpoint_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Routes, Experts, testing::Values(Route::dense, Route::qpn8),
                         [](const auto& route) { return route.param == Route::dense ? "Dense" : "Qpn8"; });

TEST_P(Experts, AreTheWeightedSumOfTheRoutedOnes) {
  const auto backend = make_cpu_backend({.threads = 2});
  const ExpertWeights experts = load(*backend);
  for (const std::int64_t rows : {1, 2, 9, 60}) {
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{3}, kExperts}) {
      const Matrix<float> x = gaussian(rows, kWidth, 5);
      const Routes routes = random_routes(rows, count, kExperts, 6);
      const double tolerance = GetParam() == Route::dense ? 2e-6 : 0.08;
      EXPECT_LE(relative_l2(run(*backend, experts, x, routes).view(), expected(x, routes).view()), tolerance)
          << rows << " rows, " << count << " each";
    }
  }
}

TEST_P(Experts, TheOrderOfARowsRoutesDoesNotMatter) {
  const auto backend = make_cpu_backend({.threads = 2});
  const ExpertWeights experts = load(*backend);
  const Matrix<float> x = gaussian(4, kWidth, 5);
  const Routes routes = random_routes(4, 5, kExperts, 6);
  Routes reversed = routes;
  for (std::int64_t t = 0; t < 4; ++t) {
    std::reverse(reversed.ids.view().row(t).begin(), reversed.ids.view().row(t).end());
    std::reverse(reversed.weights.view().row(t).begin(), reversed.weights.view().row(t).end());
  }
  EXPECT_TRUE(same_bits<float>(run(*backend, experts, x, routes).view(), run(*backend, experts, x, reversed).view()));
}

TEST_P(Experts, BitsDoNotDependOnTheNumberOfThreads) {
  const Matrix<float> x = gaussian(30, kWidth, 5);
  const Routes routes = random_routes(30, 2, kExperts, 6);
  Matrix<float> first;
  for (const int threads : {1, 2, 3}) {
    const auto backend = make_cpu_backend({.threads = threads});
    const ExpertWeights experts = load(*backend);
    const Matrix<float> out = run(*backend, experts, x, routes);
    if (threads == 1) first = out;
    EXPECT_TRUE(same_bits<float>(first.view(), out.view())) << threads;
  }
}

TEST_P(Experts, NoRowsAreNoWork) {
  const auto backend = make_cpu_backend({.threads = 2});
  const ExpertWeights experts = load(*backend);
  EXPECT_EQ(run(*backend, experts, Matrix<float>(0, kWidth), random_routes(0, 2, kExperts, 6)).rows(), 0);
}

}  // namespace
}  // namespace qpn8
