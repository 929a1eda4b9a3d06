#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/kv_layer.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

struct BlockAttentionRule {
  std::int64_t heads = 0;  ///< a multiple of the cache's key heads; head h reads key head h / (heads / kv_heads)
  std::int64_t block = 1;  ///< positions a block, from position 0 on
  float scale = 1.0F;      ///< multiplies q.k
};

/// Memory that block_attention works in, kept between calls.
struct BlockAttentionScratch {
  struct Member {
    std::vector<std::int32_t> positions;
    std::vector<float> scores;
  };
  std::vector<Member> members;
};

/// Attention over chosen blocks of the context, the same for all heads: row t at position p sees the positions of the
/// blocks in chosen[t] (numbers of complete blocks in rising order, then -1), and those after the last complete block
/// up to p. out[t] = softmax(q[t] . keys * scale) values, FP32 throughout, positions in rising order. A row's bits
/// depend on its own query, its choice and its sequence alone.
void block_attention(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places,
                     MatrixView<const std::int32_t> chosen, const BlockAttentionRule& rule,
                     BlockAttentionScratch& scratch, MatrixView<float> out, ThreadTeam& team);

/// By its formula, in FP64.
void block_attention_reference(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places,
                               MatrixView<const std::int32_t> chosen, const BlockAttentionRule& rule,
                               MatrixView<double> out);

}  // namespace qpn8::cpu
