#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/row_store.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// What a row sees of entries: those whose tokens have all arrived, its own included.
inline std::int64_t entries_before(std::int64_t position, std::int64_t ratio) { return (position + 1) / ratio; }

struct SelectRule {
  std::int64_t heads = 1;
  std::int64_t ratio = 1;  ///< tokens an entry
};

/// Memory that select_entries works in, kept between calls; as large as a sequence has room for entries.
struct SelectScratch {
  std::vector<float> scores;
  std::vector<std::int32_t> order;
};

/// For every row the entries with the largest score[w] = sum over heads h of weights[t][h] * max(0, q[t][h] . keys[w]),
/// of those that the row sees: chosen[t] holds their numbers in rising order, then -1. Ties go to the lower number; if
/// a row sees no more than chosen.cols, it gets all. NaN counts as the largest score. q [rows, heads * keys.width],
/// weights [rows, heads].
void select_entries(MatrixView<const float> q, MatrixView<const float> weights, const RowPlaces& places,
                    const RowStore& keys, const SelectRule& rule, SelectScratch& scratch,
                    MatrixView<std::int32_t> chosen, ThreadTeam& team);

/// Scores of one row by the formula, in FP64.
std::vector<double> entry_scores_reference(std::span<const float> q, std::span<const float> weights, std::int64_t slot,
                                           const RowStore& keys, const SelectRule& rule, std::int64_t entries);

}  // namespace qpn8::cpu
