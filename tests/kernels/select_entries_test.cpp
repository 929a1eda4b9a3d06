#include "kernels/cpu/select_entries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/row_cases.hpp"
#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;

constexpr std::int64_t kHeads = 3;
constexpr std::int64_t kWidth = 20;
constexpr std::int64_t kEntries = 30;
constexpr SelectRule kRule = {.heads = kHeads, .ratio = 4};

StoredRows keys(DType dtype) {
  StoredRows stored(dtype, 2, kEntries, kWidth);
  const Matrix<float> values = gaussian(2 * kEntries, kWidth, 1);
  for (std::int64_t i = 0; i < 2 * kEntries; ++i) stored.set(i / kEntries, i % kEntries, values, i);
  return stored;
}

Matrix<std::int32_t> select(const StoredRows& stored, const Matrix<float>& q, const Matrix<float>& weights,
                            const Places& places, std::int64_t count, int threads) {
  Matrix<std::int32_t> chosen(q.rows(), count);
  SelectScratch scratch;
  ThreadTeam team(threads);
  select_entries(q.view(), weights.view(), places.view(), stored.store(), kRule, scratch, chosen.view(), team);
  return chosen;
}

TEST(SelectEntries, AreTheLargestScoresOfThoseThatARowSees) {
  for_each_isa([] {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const StoredRows stored = keys(dtype);
      Places places;
      places.add(1, 40, 50);
      places.add(0, 0, 30);
      const Matrix<float> q = gaussian(80, kHeads * kWidth, 2);
      const Matrix<float> weights = gaussian(80, kHeads, 3);
      const Matrix<std::int32_t> chosen = select(stored, q, weights, places, 5, 2);
      for (std::int64_t t = 0; t < 80; ++t) {
        const auto row = static_cast<std::size_t>(t);
        const std::int64_t seen = entries_before(places.positions[row], 4);
        const std::vector<double> scores = entry_scores_reference(q.view().row(t), weights.view().row(t),
                                                                  places.slots[row], stored.store(), kRule, seen);
        std::vector<std::int32_t> order(scores.size());
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
          return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
        });
        order.resize(std::min<std::size_t>(order.size(), 5));
        std::sort(order.begin(), order.end());
        order.resize(5, -1);
        EXPECT_TRUE(std::equal(order.begin(), order.end(), chosen.view().row(t).begin())) << "row " << t;
      }
    }
  });
}

TEST(SelectEntries, EqualScoresGoToTheLowerNumberAndNanToTheFront) {
  for_each_isa([] {
    StoredRows stored(DType::f32, 1, kEntries, kWidth);
    Matrix<float> values(3, kWidth);
    std::fill(values.view().row(1).begin(), values.view().row(1).end(), 1.0F);
    std::fill(values.view().row(2).begin(), values.view().row(2).end(), std::nanf(""));
    for (std::int64_t w = 0; w < kEntries; ++w) stored.set(0, w, values, w >= 10 && w < 20 ? 1 : 0);
    stored.set(0, 25, values, 2);
    Places places;
    places.add(0, 4 * kEntries - 1, 1);
    Matrix<float> q(1, kHeads * kWidth);
    std::fill(q.values().begin(), q.values().end(), 1.0F);
    Matrix<float> weights(1, kHeads);
    std::fill(weights.values().begin(), weights.values().end(), 1.0F);
    const Matrix<std::int32_t> chosen = select(stored, q, weights, places, 4, 1);
    const std::vector<std::int32_t> expected = {10, 11, 12, 25};
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), chosen.values().begin()));
  });
}

}  // namespace
}  // namespace qpn8::cpu
