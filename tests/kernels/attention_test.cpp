#include "kernels/cpu/attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/isas.hpp"
#include "support/kv_store.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::KvStore;
using test::relative_l2;
using test::same_bits;
using test::Strided;

/// One sequence after the other, as rows of a batch.
struct Places {
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> positions;

  Places& add(std::int32_t slot, std::int64_t first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      slots.push_back(slot);
      positions.push_back(static_cast<std::int32_t>(first + i));
    }
    return *this;
  }
  RowPlaces view() const { return {slots, positions}; }
  std::int64_t rows() const { return static_cast<std::int64_t>(slots.size()); }
};

struct Case {
  DType dtype = DType::f16;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 32;
  std::int64_t window = 0;

  AttentionRule rule() const { return {heads, 1.0F / std::sqrt(static_cast<float>(head_dim)), window}; }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << to_string(c.dtype) << " heads " << c.heads << "/" << c.kv_heads << " of " << c.head_dim << " window "
             << c.window;
}

Matrix<float> attend(KvStore& store, const Matrix<float>& q, const Places& places, const AttentionRule& rule,
                     int threads) {
  ThreadTeam team(threads);
  AttentionScratch scratch;
  Matrix<float> out(q.rows(), q.cols());
  attention(store.layer(), q.view(), places.view(), rule, scratch, out.view(), team);
  return out;
}

void expect_reference(const Case& c, std::int64_t tokens, std::int64_t first) {
  KvStore store(c.dtype, 2, tokens, c.kv_heads, c.head_dim);
  store.fill(1, tokens, 11);
  const Places places = Places().add(1, first, tokens - first);
  const Matrix<float> values = gaussian(places.rows(), c.heads * c.head_dim, 5, 2.0F);
  Strided q(values);
  Matrix<double> expected(values.rows(), values.cols());
  attention_reference(store.layer(), q.view(), places.view(), c.rule(), expected.view());
  ThreadTeam team(2);
  AttentionScratch scratch;
  Strided out{Matrix<float>(values.rows(), values.cols())};
  attention(store.layer(), q.view(), places.view(), c.rule(), scratch, out.view(), team);
  EXPECT_LE(relative_l2(out.view(), expected.view()), 2e-6) << c << " tokens " << tokens << " from " << first;
}

TEST(Attention, IsTheFormulaForEveryHeadWidth) {
  for_each_isa([] {
    for (const DType dtype : {DType::f16, DType::f32}) {
      for (const std::int64_t head_dim : {4, 16, 20, 32, 64, 80, 128, 256}) {
        expect_reference({.dtype = dtype, .head_dim = head_dim}, 21, 0);
        expect_reference({.dtype = dtype, .head_dim = head_dim}, 40, 39);
      }
    }
  });
}

TEST(Attention, IsTheFormulaForEveryGroupOfHeads) {
  for_each_isa([] {
    for (const std::int64_t kv_heads : {1, 2, 3}) {
      for (const std::int64_t group : {1, 2, 3, 4, 5, 7, 8, 40}) {
        expect_reference({.heads = kv_heads * group, .kv_heads = kv_heads, .head_dim = 16}, 23, 0);
      }
    }
  });
}

TEST(Attention, IsTheFormulaAcrossSplits) {
  for_each_isa([] {
    for (const std::int64_t tokens : {255, 256, 257, 530}) {
      expect_reference({.head_dim = 16}, tokens, tokens - 1);
      expect_reference({.head_dim = 16}, tokens, tokens - 37);
    }
    expect_reference({.heads = 2, .kv_heads = 1, .head_dim = 16}, 300, 0);
  });
}

TEST(Attention, AWindowHidesWhatLiesBeforeIt) {
  for_each_isa([] {
    for (const std::int64_t window : {1, 2, 5, 16, 17, 100, 260}) {
      expect_reference({.head_dim = 16, .window = window}, 60, 0);
      expect_reference({.head_dim = 16, .window = window}, 520, 480);
    }
  });
}

TEST(Attention, BitsDoNotDependOnTheNumberOfThreads) {
  for_each_isa([] {
    for (const std::int64_t rows : {1, 3, 40}) {
      KvStore store(DType::f16, 1, 700, 2, 32);
      store.fill(0, 700, 3);
      const Places places = Places().add(0, 700 - rows, rows);
      const Matrix<float> q = gaussian(rows, 4 * 32, 9);
      const Case c{.window = 600};
      const Matrix<float> one = attend(store, q, places, c.rule(), 1);
      for (const int threads : {2, 3, 8}) {
        const Matrix<float> many = attend(store, q, places, c.rule(), threads);
        EXPECT_TRUE(same_bits<float>(one.view(), many.view())) << rows << " rows, " << threads << " threads";
      }
    }
  });
}

TEST(Attention, ARowDoesNotDependOnTheRowsBesideIt) {
  for_each_isa([] {
    KvStore store(DType::f16, 3, 300, 2, 32);
    store.fill(0, 300, 3);
    store.fill(2, 280, 4);
    const Case c{.window = 270};
    const Places together = Places().add(2, 279, 1).add(0, 230, 70).add(2, 5, 3);
    const Matrix<float> q = gaussian(together.rows(), 4 * 32, 9);
    const Matrix<float> all = attend(store, q, together, c.rule(), 2);
    for (std::int64_t t = 0; t < together.rows(); ++t) {
      const auto row = static_cast<std::size_t>(t);
      const Places alone = Places().add(together.slots[row], together.positions[row], 1);
      Matrix<float> query(1, q.cols());
      std::copy(q.view().row(t).begin(), q.view().row(t).end(), query.values().begin());
      const Matrix<float> one = attend(store, query, alone, c.rule(), 1);
      EXPECT_TRUE(same_bits<float>(one.view(), all.view().row_range(t, 1))) << t;
    }
  });
}

TEST(Attention, WhatAnEarlierSequenceLeftBehindIsNotSeen) {
  for_each_isa([] {
    KvStore clean(DType::f32, 1, 64, 1, 20);
    KvStore dirty(DType::f32, 1, 64, 1, 20);
    const Matrix<float> nan = [] {
      Matrix<float> values(64, 20);
      for (float& value : values.values()) value = std::nanf("");
      return values;
    }();
    dirty.append(0, 0, nan, nan);
    clean.fill(0, 19, 3);
    dirty.fill(0, 19, 3);
    const Places places = Places().add(0, 0, 19);
    const Matrix<float> q = gaussian(19, 40, 9);
    const AttentionRule rule = {2, 0.2F, 0};
    EXPECT_TRUE(same_bits<float>(attend(clean, q, places, rule, 2).view(), attend(dirty, q, places, rule, 2).view()));
  });
}

TEST(Attention, ExtremeScoresStayFiniteAndNanIsNotHidden) {
  for_each_isa([] {
    KvStore store(DType::f32, 1, 300, 1, 16);
    store.fill(0, 300, 3);
    const Places places = Places().add(0, 298, 2);
    Matrix<float> q = gaussian(2, 16, 9, 1e18F);
    const AttentionRule rule = {1, 1.0F, 0};
    const Matrix<float> extreme = attend(store, q, places, rule, 1);
    for (const float value : extreme.values()) EXPECT_TRUE(std::isfinite(value));
    q(1, 7) = std::nanf("");
    const Matrix<float> out = attend(store, q, places, rule, 1);
    for (std::int64_t i = 0; i < 16; ++i) {
      EXPECT_TRUE(std::isfinite(out(0, i)));
      EXPECT_TRUE(std::isnan(out(1, i)));
    }
  });
}

TEST(Attention, NoRowsAreNoWork) {
  KvStore store(DType::f16, 1, 16, 1, 16);
  attend(store, Matrix<float>(0, 16), Places(), {1, 1.0F, 0}, 2);
}

}  // namespace
}  // namespace qpn8::cpu
