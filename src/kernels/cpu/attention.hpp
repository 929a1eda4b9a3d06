#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/kv_layer.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// What attention does with a score. Query heads are a multiple of the cache's key heads; query head h reads key head
/// h / (heads / kv_heads).
struct AttentionRule {
  std::int64_t heads = 0;
  float scale = 1.0F;       ///< multiplies q.k
  std::int64_t window = 0;  ///< a row sees itself and the window - 1 positions before it; 0: all before it
};

/// Memory that attention works in, kept between calls and grown when a call is larger than all before it.
class AttentionScratch {
 public:
  AttentionScratch();
  ~AttentionScratch();
  AttentionScratch(const AttentionScratch&) = delete;
  AttentionScratch& operator=(const AttentionScratch&) = delete;

 private:
  friend class AttentionCall;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Causal attention of q [rows, heads * head_dim] over what the layer holds at the rows' places, themselves included:
/// out[t] = softmax(q[t] . keys * scale) values, FP32 throughout.
///
/// A row's bits depend on its own query and its sequence alone: not on the threads, nor on the rows beside it, so that
/// prefilling whole, in chunks and token by token is the same sum. Positions are summed in splits of 256, counted from
/// position 0, which are then merged in order.
/// Query heads of one key head go together, and so do neighbouring rows of one sequence: keys and values are read from
/// memory once for up to 32 query vectors. out must not overlap q.
void attention(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places, const AttentionRule& rule,
               AttentionScratch& scratch, MatrixView<float> out, ThreadTeam& team);

/// By its formula, in FP64.
void attention_reference(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places,
                         const AttentionRule& rule, MatrixView<double> out);

}  // namespace qpn8::cpu
