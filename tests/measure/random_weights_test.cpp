#include "measure/random_weights.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "backend/cpu_backend.hpp"

namespace qpn8 {
namespace {

PlannedProjection planned(std::int64_t k, std::int64_t n, WeightType type, Route route) {
  PlannedProjection plan;
  plan.name = "x";
  plan.tensor.role = "x";
  plan.tensor.k = k;
  plan.tensor.n = n;
  plan.tensor.type = type;
  plan.route = route;
  plan.padded_n = n;
  return plan;
}

TEST(RandomWeights, LoadAtAnyWidthTypeAndRouteWithExactlyTheBytesOfTheShape) {
  const auto backend = make_cpu_backend({.threads = 2});
  struct Case {
    WeightType type;
    std::int64_t dense_bytes_a_weight;
  };
  // FP8 with block scales is widened on the dense route.
  for (const Case& c :
       {Case{WeightType::f32, 4}, Case{WeightType::f16, 2}, Case{WeightType::bf16, 2}, Case{WeightType::f8_e4m3, 4}}) {
    for (const std::int64_t n : {32, 1024, 1024 + 96}) {
      const PlannedProjection dense = planned(48, n, c.type, Route::dense);
      const PlannedProjection packed = planned(48, n, c.type, Route::qpn8);
      const RandomWeights weights(48, c.type);
      const auto on_dense = backend->load_linear(weights.source(dense));
      EXPECT_EQ(on_dense->bytes(), n * 48 * c.dense_bytes_a_weight);
      const auto on_qpn8 = backend->load_linear(weights.source(packed));
      EXPECT_EQ(on_qpn8->n(), n);
      EXPECT_EQ(on_qpn8->k(), 48);
      EXPECT_GE(on_qpn8->bytes(), n * 48);
      EXPECT_LE(on_qpn8->bytes(), n * 48 + 4 * n + n * 48 / 512 + 4 * n);
    }
  }
}

TEST(RandomWeights, ValuesAreGaussianLikeAndTheSameEachTime) {
  const std::vector<float> values = random_values(100'000);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 1e5;
  double squares = 0;
  for (const float value : values) squares += value * value;
  EXPECT_NEAR(mean, 0.0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / 1e5), 1.0, 0.02);
  EXPECT_EQ(values, random_values(100'000));
}

TEST(ScratchFolder, IsRemovedWithItsContent) {
  std::filesystem::path path;
  {
    const ScratchFolder folder;
    path = folder.path();
    EXPECT_TRUE(std::filesystem::is_directory(path));
    std::filesystem::create_directory(path / "x");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace qpn8
