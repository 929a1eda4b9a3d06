#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/row_store.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// What the rows see: vectors that are key and value at once, for all heads.
struct LatentSources {
  RowStore window;                        ///< a ring of the last per_slot positions
  RowStore entries;                       ///< pooled ones; entries.per_slot is 0 where a layer has none
  MatrixView<const std::int32_t> chosen;  ///< of each row, entries in rising order, then -1; no columns: all it sees
  std::span<const float> sinks;           ///< a head's extra logit, whose share of the softmax goes nowhere
};

struct LatentRule {
  std::int64_t heads = 1;
  std::int64_t window = 1;  ///< a row sees itself and the window - 1 positions before it
  std::int64_t ratio = 1;   ///< tokens an entry
  float scale = 1.0F;       ///< multiplies q.k, not the sink
};

/// Memory that latent_attention works in, kept between calls.
struct LatentScratch {
  struct Member {
    std::vector<const std::byte*> rows;
    std::vector<float> scores;
  };
  std::vector<Member> members;
};

/// out[t] = sum of what the row sees by the softmax of q[t] . seen * scale, a head at a time, FP32 throughout; the
/// window in order, then the entries. q and out [rows, heads * width].
/// A row's bits depend on its own query and its sequence alone: not on the threads, nor on the rows beside it.
void latent_attention(MatrixView<const float> q, const RowPlaces& places, const LatentSources& sources,
                      const LatentRule& rule, LatentScratch& scratch, MatrixView<float> out, ThreadTeam& team);

/// By its formula, in FP64.
void latent_attention_reference(MatrixView<const float> q, const RowPlaces& places, const LatentSources& sources,
                                const LatentRule& rule, MatrixView<double> out);

}  // namespace qpn8::cpu
