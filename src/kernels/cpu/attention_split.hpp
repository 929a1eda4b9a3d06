#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/cpu/kv_layer.hpp"

// The arithmetic of attention: one split of positions for a few query vectors. attention.cpp says who does which.

namespace qpn8::cpu {

/// Positions a split. A row's sum is cut at multiples of it, whoever computes the parts.
inline constexpr std::int64_t kSplit = 256;

/// Query vectors that read the same key head of the same sequence: `group` heads of each of some consecutive rows.
struct QueryTile {
  std::span<const float* const> vectors;  ///< row by row, head_dim values each
  std::int64_t group = 1;
  std::int64_t slot = 0;
  std::int64_t kv_head = 0;
  std::int64_t first_position = 0;  ///< of the first row
  float scale = 1.0F;
  std::int64_t window = 0;

  std::int64_t rows() const { return static_cast<std::int64_t>(vectors.size()) / group; }
  /// What the row sees: [first_visible, end_visible).
  std::int64_t first_visible(std::int64_t row) const {
    return window > 0 ? std::max<std::int64_t>(0, first_position + row - window + 1) : 0;
  }
  std::int64_t end_visible(std::int64_t row) const { return first_position + row + 1; }
};

/// Softmax over some of the positions, not yet divided: for each query vector the largest score, the total of
/// e^(score - largest) and the values weighted by those. largest is -inf where there were no positions.
struct PartialSoftmax {
  float* largest = nullptr;
  float* total = nullptr;
  float* sums = nullptr;  ///< [vectors, padded_head_dim], 64-byte aligned

  /// Elements for so many vectors.
  static std::int64_t elements(std::int64_t vectors, std::int64_t padded_head_dim) {
    return vectors * padded_head_dim + 2 * ((vectors + 15) / 16 * 16);
  }
  PartialSoftmax() = default;
  PartialSoftmax(float* memory, std::int64_t vectors, std::int64_t padded_head_dim)
      : largest(memory + vectors * padded_head_dim), total(largest + (vectors + 15) / 16 * 16), sums(memory) {}
};

/// Computes split number `split`. scores: kSplit elements a vector, 64-byte aligned.
void attend_split(const KvLayer& layer, const QueryTile& tile, std::int64_t split, float* scores,
                  const PartialSoftmax& out);

/// Makes `state` the softmax over no positions.
void clear(const PartialSoftmax& state, std::int64_t vectors, std::int64_t padded_head_dim);

/// Adds a part's positions to the state's.
void merge(const PartialSoftmax& part, std::int64_t vectors, std::int64_t padded_head_dim, const PartialSoftmax& state);

/// out = the state's sums / total of one vector.
void finish(const PartialSoftmax& state, std::int64_t vector, std::int64_t head_dim, std::int64_t padded_head_dim,
            float* out);

}  // namespace qpn8::cpu
