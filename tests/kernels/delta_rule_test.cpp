#include "kernels/cpu/delta_rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/row_cases.hpp"
#include "support/isas.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;

/// One sequence of a delta rule.
struct DeltaCase {
  DeltaCase(const DeltaShape& shape_, std::int64_t tokens)
      : shape(shape_),
        qkv(gaussian(tokens, 2 * shape.key_heads * shape.key_dim + shape.value_heads * shape.value_dim, 1)),
        b(gaussian(tokens, shape.value_heads, 2)),
        a(gaussian(tokens, shape.value_heads, 3, 2.0F)),
        decay_log(gaussian(1, shape.value_heads, 4)),
        decay_bias(gaussian(1, shape.value_heads, 5)) {}

  DeltaInputs inputs(Matrix<float>& x, const Matrix<float>& b_rows, const Matrix<float>& a_rows) const {
    return {x.view(), b_rows.view(), a_rows.view(), decay_log.view().row(0), decay_bias.view().row(0)};
  }

  Matrix<double> expected() const {
    Matrix<float> x = qkv;
    Matrix<double> out(qkv.rows(), shape.value_heads * shape.value_dim);
    delta_rule_reference(inputs(x, b, a), shape, out.view());
    return out;
  }

  /// In calls of `chunk` tokens, in slot 1 behind a token of slot 0. States hold rubbish before.
  Matrix<float> run(std::int64_t chunk, int threads) const {
    StoredRows states(DType::f32, 2, shape.value_heads, shape.key_dim * shape.value_dim);
    const Matrix<float> rubbish = gaussian(2 * shape.value_heads, states.store().width, 7);
    for (std::int64_t i = 0; i < rubbish.rows(); ++i)
      states.set(i / shape.value_heads, i % shape.value_heads, rubbish, i);
    ThreadTeam team(threads);
    DeltaScratch scratch;
    Matrix<float> result(qkv.rows(), shape.value_heads * shape.value_dim);
    for (std::int64_t first = 0; first < qkv.rows(); first += chunk) {
      const std::int64_t rows = std::min(chunk, qkv.rows() - first);
      Matrix<float> x = with_row_before(qkv, first, rows);
      const Matrix<float> b_rows = with_row_before(b, first, rows);
      const Matrix<float> a_rows = with_row_before(a, first, rows);
      Places places;
      places.add(0, static_cast<std::int32_t>(first), 1);
      places.add(1, static_cast<std::int32_t>(first), static_cast<std::int32_t>(rows));
      Matrix<float> out(1 + rows, result.cols());
      delta_rule(inputs(x, b_rows, a_rows), places.view(), shape, states.store(), scratch, out.view(), team);
      for (std::int64_t t = 0; t < rows; ++t) {
        std::ranges::copy(out.view().row(1 + t), result.view().row(first + t).begin());
      }
    }
    return result;
  }

  static Matrix<float> with_row_before(const Matrix<float>& all, std::int64_t first, std::int64_t rows) {
    Matrix<float> batch = gaussian(1 + rows, all.cols(), 6);
    for (std::int64_t t = 0; t < rows; ++t)
      std::ranges::copy(all.view().row(first + t), batch.view().row(1 + t).begin());
    return batch;
  }

  DeltaShape shape;
  Matrix<float> qkv;
  Matrix<float> b;
  Matrix<float> a;
  Matrix<float> decay_log;
  Matrix<float> decay_bias;
};

TEST(DeltaRule, TokenByTokenAndInChunksIsTheFormula) {
  for_each_isa([] {
    for (const DeltaShape& shape : {DeltaShape{2, 6, 16, 24}, DeltaShape{1, 1, 5, 3}, DeltaShape{3, 3, 32, 33}}) {
      const DeltaCase c(shape, 150);
      const Matrix<double> expected = c.expected();
      // 150 ends in chunks of 64, 64 and 22; 70 in one of 64 and six steps.
      for (const std::int64_t chunk : {150, 70, 8, 5, 1}) {
        EXPECT_LE(relative_l2(c.run(chunk, 1).view(), expected.view()), 2e-5) << shape.value_dim << ", " << chunk;
      }
    }
  });
}

TEST(DeltaRule, HasTheSameBitsForAnyNumberOfThreads) {
  const DeltaCase c({4, 12, 32, 32}, 90);
  for (const std::int64_t chunk : {90, 1}) {
    EXPECT_TRUE(same_bits<float>(c.run(chunk, 3).view(), c.run(chunk, 1).view())) << chunk;
  }
}

TEST(DeltaRule, ADecayOfNothingForgets) {
  DeltaCase c({1, 1, 8, 8}, 3);
  // exp(-exp(10)) is 0: only the token's own key and value are recalled.
  for (float& value : c.decay_log.values()) value = 10.0F;
  const Matrix<float> out = c.run(1, 1);
  const DeltaCase alone({1, 1, 8, 8}, 3);
  Matrix<float> x = alone.qkv;
  for (std::int64_t t = 0; t < 3; ++t) {
    double product = 0;
    double q_squares = 1e-6;
    double k_squares = 1e-6;
    for (std::int64_t i = 0; i < 8; ++i) {
      product += static_cast<double>(x(t, i)) * x(t, 8 + i);
      q_squares += static_cast<double>(x(t, i)) * x(t, i);
      k_squares += static_cast<double>(x(t, 8 + i)) * x(t, 8 + i);
    }
    const double beta = 1.0 / (1.0 + std::exp(-c.b(t, 0)));
    const double factor = beta * product / std::sqrt(q_squares * k_squares * 8.0);
    for (std::int64_t j = 0; j < 8; ++j) EXPECT_NEAR(out(t, j), factor * x(t, 16 + j), 1e-5) << t;
  }
}

}  // namespace
}  // namespace qpn8::cpu
