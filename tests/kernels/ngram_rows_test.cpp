#include "kernels/cpu/ngram_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/row_cases.hpp"
#include "support/isas.hpp"

namespace qpn8::cpu {
namespace {

using test::gaussian;
using test::same_bits;
using ::testing::ElementsAre;

/// Of a vocabulary of 512 tokens, 3-grams and 4 heads for each n: sizes from 200 on.
NgramRule small_rule() {
  NgramRule rule = {.multipliers = {4295158889763781, 17440218147737327, 1270917961434445},
                    .sizes = {211, 223, 227, 229, 233, 239, 241, 251},
                    .offsets = {},
                    .boundary = 2};
  std::int64_t rows = 0;
  for (const std::int64_t size : rule.sizes) {
    rule.offsets.push_back(rows);
    rows += size;
  }
  return rule;
}

TEST(NgramRows, AreThePublishedOnesWithTheBoundaryInside) {
  const NgramRule rule = small_rule();
  const std::vector<std::int32_t> tokens = {5, 6, 2, 7, 8, 9};
  const auto rows = [&](std::size_t count) { return ngram_rows_reference(rule, std::span(tokens).first(count)); };
  EXPECT_THAT(rows(1), ElementsAre(45, 303, 462, 744, 952, 1240, 1480, 1801));
  EXPECT_THAT(rows(2), ElementsAre(76, 342, 657, 816, 1119, 1262, 1536, 1730));
  EXPECT_THAT(rows(3), ElementsAre(4, 212, 603, 719, 1021, 1140, 1567, 1687)) << "the boundary sees what is before it";
  EXPECT_THAT(rows(4), ElementsAre(0, 364, 453, 714, 953, 1249, 1547, 1609)) << "what follows it does not";
  EXPECT_THAT(rows(5), ElementsAre(133, 394, 659, 853, 1118, 1356, 1398, 1742));
  EXPECT_THAT(rows(6), ElementsAre(19, 354, 539, 773, 909, 1287, 1425, 1652));
}

TEST(NgramRows, AreFoundInAnyPartHoweverTokensAreSpreadOverCalls) {
  const NgramRule rule = small_rule();
  const Matrix<float> values = gaussian(1920, 5, 1);
  NgramTable table = {.dtype = DType::f32, .parts = {}, .rows_a_part = 700, .width = 5};  // the last has fewer
  for (std::int64_t first = 0; first < values.rows(); first += table.rows_a_part) {
    table.parts.push_back(reinterpret_cast<const std::byte*>(values.view().row(first).data()));
  }
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < 40; ++i) tokens.push_back(i % 11 == 7 ? 2 : i * 37 % 512);
  Matrix<float> expected(40, 40);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::vector<std::int64_t> rows = ngram_rows_reference(rule, std::span(tokens).first(t + 1));
    for (std::size_t head = 0; head < rows.size(); ++head) {
      std::ranges::copy(values.view().row(rows[head]), expected.view().row(static_cast<std::int64_t>(t)).begin() +
                                                           static_cast<std::ptrdiff_t>(5 * head));
    }
  }
  for (const std::size_t chunk : {40, 7, 2, 1}) {
    std::vector<std::int32_t> history(4, 99);  // of two sequences, rubbish
    Matrix<float> out(40, 40);
    ThreadTeam team(2);
    for (std::size_t first = 0; first < tokens.size(); first += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - first);
      Places places;
      places.add(1, static_cast<std::int32_t>(first), static_cast<std::int32_t>(count));
      ngram_rows(table, rule, std::span(tokens).subspan(first, count), places.view(), {history.data(), 2, 2},
                 out.view().row_range(static_cast<std::int64_t>(first), static_cast<std::int64_t>(count)), team);
    }
    EXPECT_TRUE(same_bits<float>(out.view(), expected.view())) << chunk;
  }
}

}  // namespace
}  // namespace qpn8::cpu
