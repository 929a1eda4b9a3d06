#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/row_store.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// Most tokens that an entry stands for.
inline constexpr std::int64_t kMostPooled = 256;

/// How tokens are pooled into entries.
struct PoolRule {
  std::int64_t ratio =
      1;  ///< at most kMostPooled: entry w stands for the tokens at positions w ratio .. (w + 1) ratio - 1
  bool overlaps = false;  ///< an entry takes in the window before its own too, by other channels
  float eps = 0.0F;
};

struct PoolWeights {
  MatrixView<const float> gate_bias;   ///< [ratio, channels], added to the gates of the position modulo ratio
  std::span<const float> norm;         ///< [width]
  std::span<const float> frequencies;  ///< of the rotation of an entry's last 2 * size dimensions
};

/// One of the tokens that an entry is made of: the channels that go into it.
struct PooledToken {
  const float* values = nullptr;
  const float* gates = nullptr;
  const float* bias = nullptr;
};

/// Makes the entries whose last token is among the rows. A row x is `channels` values and as many gates; channels is
/// width, or 2 width if windows overlap, and then the first half is for the entry after the token's own.
///
/// An entry's channel is the sum of its tokens' values by a softmax of their gates (in FP32, tokens in order), then the
/// entry is normalised (rms) and its last dimensions are rotated in interleaved pairs by the window's first position.
/// `pending` (F32, rows as wide as x, as many a sequence as an entry has tokens) keeps the rows that later entries
/// need; entry w lies in row w of `entries`. An entry's bits do not depend on how its tokens were spread over calls.
/// scratch: [x.rows, width].
void pool_rows(MatrixView<const float> x, const RowPlaces& places, const PoolRule& rule, const PoolWeights& weights,
               const RowStore& pending, const RowStore& entries, MatrixView<float> scratch, ThreadTeam& team);

/// Entry w of a sequence from all its rows, by the formula, in FP64.
void pool_entry_reference(MatrixView<const float> x, std::int64_t w, const PoolRule& rule, const PoolWeights& weights,
                          std::span<double> entry);

}  // namespace qpn8::cpu
