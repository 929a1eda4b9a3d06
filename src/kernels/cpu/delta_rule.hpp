#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/row_store.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

// The gated delta rule of linear attention ("Gated Delta Networks", 2412.06464): a head remembers a matrix S
// [key_dim, value_dim] in place of keys and values.

namespace qpn8::cpu {

struct DeltaShape {
  std::int64_t key_heads = 1;
  std::int64_t value_heads = 1;  ///< a multiple of key_heads: value head h reads key head h / (value_heads / key_heads)
  std::int64_t key_dim = 1;
  std::int64_t value_dim = 1;
};

struct DeltaInputs {
  /// [rows, 2 key_heads * key_dim + value_heads * value_dim]: q | k | v. q and k are normalised in place.
  MatrixView<float> qkv;
  MatrixView<const float> b;          ///< [rows, value_heads], beta = sigmoid(b) is how much of a value is written
  MatrixView<const float> a;          ///< [rows, value_heads], of the decay below
  std::span<const float> decay_log;   ///< [value_heads]
  std::span<const float> decay_bias;  ///< [value_heads]
};

/// Tokens that delta_rule() takes together.
inline constexpr std::int64_t kDeltaChunk = 64;

/// Memory that delta_rule works in, kept between calls.
struct DeltaScratch {
  /// Consecutive rows of one sequence.
  struct Run {
    std::int64_t first_row = 0;
    std::int64_t rows = 0;
    std::int64_t slot = 0;
    bool begins = false;  ///< at position 0, where S is zero whatever memory holds
  };
  std::vector<Run> runs;
  std::vector<std::vector<float>> members;
};

/// For each token and value head, with q and k divided by their lengths (eps 1e-6 under the root) and q by the root of
/// key_dim too, and g = exp(-exp(decay_log) softplus(a + decay_bias)):
///   S = g S;  S += k (beta (v - S^T k))^T;  out = S^T q.
/// Tokens are taken one by one where a sequence has few of them in the batch, else in chunks of kDeltaChunk by the
/// chunk-parallel form, which is the same sum in another order. `states` is F32, value_heads rows of
/// key_dim * value_dim a sequence. out [rows, value_heads * value_dim]. No result depends on the number of threads.
void delta_rule(const DeltaInputs& inputs, const RowPlaces& places, const DeltaShape& shape, const RowStore& states,
                DeltaScratch& scratch, MatrixView<float> out, ThreadTeam& team);

/// Token by token, in FP64, of one sequence from its beginning; inputs.qkv is left as it is.
void delta_rule_reference(const DeltaInputs& inputs, const DeltaShape& shape, MatrixView<double> out);

}  // namespace qpn8::cpu
