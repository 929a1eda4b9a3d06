#include "kernels/cpu/hyper_connection.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kWidth = 45;

/// A residual with the maps of one block.
struct Case {
  Case(std::int64_t streams, std::int64_t maps, std::int64_t steps)
      : rule{.streams = streams, .sinkhorn_steps = steps, .eps = 1e-6F, .norm_eps = 1e-6F},
        h(gaussian(kRows, streams * kWidth, 1, 3.0F)),
        z(gaussian(kRows, maps, 2, 3.0F)),
        base(gaussian(1, maps, 3)),
        scale(gaussian(1, maps == streams ? 1 : 3, 4)) {}

  StreamMaps all() const { return {z.view(), base.view().row(0), scale.view().row(0)}; }

  Matrix<float> weights(int threads = 1) const {
    Matrix<float> out(kRows, z.cols());
    ThreadTeam team(threads);
    stream_weights(h.view(), all(), rule, out.view(), team);
    return out;
  }

  StreamRule rule;
  Matrix<float> h;
  Matrix<float> z;
  Matrix<float> base;
  Matrix<float> scale;
};

TEST(StreamWeights, AreTheFormulasForAnyNumberOfStreamsAndSteps) {
  for_each_isa([] {
    for (const std::int64_t streams : {1, 2, 4, 16}) {
      for (const std::int64_t steps : {1, 20}) {
        for (const std::int64_t maps : {streams, (2 + streams) * streams}) {
          const Case c(streams, maps, steps);
          Matrix<double> expected(kRows, maps);
          stream_weights_reference(c.h.view(), c.all(), c.rule, expected.view());
          EXPECT_LE(relative_l2(c.weights().view(), expected.view()), 2e-6) << streams << " " << steps << " " << maps;
          EXPECT_TRUE(same_bits<float>(c.weights(3).view(), c.weights().view()));
        }
      }
    }
  });
}

TEST(StreamWeights, MixStreamsDoublyStochastically) {
  const Case c(4, 24, 20);
  const Matrix<float> weights = c.weights();
  for (std::int64_t t = 0; t < kRows; ++t) {
    for (std::int64_t k = 0; k < 4; ++k) {
      float row = 0;
      float column = 0;
      for (std::int64_t j = 0; j < 4; ++j) {
        row += weights(t, 8 + k * 4 + j);
        column += weights(t, 8 + j * 4 + k);
      }
      EXPECT_NEAR(row, 1.0, 0.05);
      EXPECT_NEAR(column, 1.0, 1e-4);
    }
  }
}

TEST(Streams, AreCollapsedAndExpandedByTheirWeights) {
  for_each_isa([] {
    for (const std::int64_t streams : {1, 2, 4, 16}) {
      const Case c(streams, (2 + streams) * streams, 3);
      const Matrix<float> weights = c.weights();
      const Matrix<float> y = gaussian(kRows, kWidth, 7);
      Matrix<double> sum(kRows, kWidth);
      Matrix<double> mixed(kRows, streams * kWidth);
      collapse_streams_reference(c.h.view(), weights.view(), sum.view());
      expand_streams_reference(c.h.view(), weights.view(), y.view(), mixed.view());
      for (const int threads : {1, 2}) {
        ThreadTeam team(threads);
        Matrix<float> x(kRows, kWidth);
        Matrix<float> h = c.h;
        collapse_streams(h.view(), weights.view(), x.view(), team);
        expand_streams(h.view(), weights.view(), y.view(), team);
        EXPECT_LE(relative_l2(x.view(), sum.view()), 1e-6) << streams;
        EXPECT_LE(relative_l2(h.view(), mixed.view()), 1e-6) << streams;
      }
    }
  });
}

}  // namespace
}  // namespace qpn8::cpu
