#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/row_store.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

struct MeanPoolRule {
  std::int64_t ratio = 1;  ///< entry w stands for the tokens at positions w ratio .. (w + 1) ratio - 1
  float eps = 0.0F;
  std::span<const float> norm;         ///< as wide as a row
  std::span<const float> frequencies;  ///< of the rotation of the first 2 * size dimensions, pairs (i, i + size)
};

/// Makes the entries whose last token is among the rows: the mean of the tokens' rows, normalised (rms), rotated by the
/// window's first position. `pending` (F32, a ring of at least ratio rows a sequence) keeps what later entries need;
/// entry w lies in row w of `entries`. An entry's bits do not depend on how its tokens were spread over calls. scratch:
/// as large as x.
void mean_pool(MatrixView<const float> x, const RowPlaces& places, const MeanPoolRule& rule, const RowStore& pending,
               const RowStore& entries, MatrixView<float> scratch, ThreadTeam& team);

/// Entry w of a sequence from all its rows, by the formula, in FP64.
void mean_pool_reference(MatrixView<const float> x, std::int64_t w, const MeanPoolRule& rule, std::span<double> entry);

}  // namespace qpn8::cpu
