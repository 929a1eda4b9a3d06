#include "kernels/cpu/kv_layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "qpn8/half.hpp"
#include "support/isas.hpp"
#include "support/kv_store.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::gaussian;
using test::KvStore;

float stored(DType dtype, float value) { return dtype == DType::f16 ? to_float(to_half(value)) : value; }

void expect_elements_where_they_were_appended(DType dtype, std::int64_t head_dim) {
  KvStore store(dtype, 3, 37, 2, head_dim);
  Matrix<float> k = gaussian(37, 2 * head_dim, 1);
  Matrix<float> v = gaussian(37, 2 * head_dim, 2);
  // Halfway between two halves, below the smallest one, beyond the largest, and what is not finite.
  const float edges[] = {1.00048828125F, 2.98e-8F, -65520.0F, std::numeric_limits<float>::infinity(), -0.0F};
  std::copy(std::begin(edges), std::end(edges), k.values().begin() + 3);
  std::copy(std::begin(edges), std::end(edges), v.values().begin() + 5);
  store.append(1, 0, k, v);
  for (std::int64_t position = 0; position < 37; ++position) {
    for (std::int64_t i = 0; i < 2 * head_dim; ++i) {
      const std::int64_t head = i / head_dim;
      EXPECT_EQ(key_at(store.layer(), 1, head, position, i % head_dim), stored(dtype, k(position, i)));
      EXPECT_EQ(value_at(store.layer(), 1, head, position, i % head_dim), stored(dtype, v(position, i)));
    }
  }
}

TEST(KvLayer, EveryElementIsFoundWhereItWasAppended) {
  test::for_each_isa([] {
    for (const DType dtype : {DType::f16, DType::f32}) {
      for (const std::int64_t head_dim : {16, 20, 128}) expect_elements_where_they_were_appended(dtype, head_dim);
    }
  });
}

TEST(KvLayer, OtherSequencesAndPositionsAreLeftAlone) {
  KvStore store(DType::f16, 3, 37, 2, 20);
  const Matrix<float> ones = [] {
    Matrix<float> values(2, 40);
    for (float& value : values.values()) value = 1.0F;
    return values;
  }();
  store.append(1, 15, ones, ones);
  for (std::int64_t slot = 0; slot < 3; ++slot) {
    for (std::int64_t position = 0; position < 37; ++position) {
      const float expected = slot == 1 && (position == 15 || position == 16) ? 1.0F : 0.0F;
      for (std::int64_t i = 0; i < 20; ++i) {
        EXPECT_EQ(key_at(store.layer(), slot, 1, position, i), expected);
        EXPECT_EQ(value_at(store.layer(), slot, 1, position, i), expected);
      }
    }
  }
}

}  // namespace
}  // namespace qpn8::cpu
