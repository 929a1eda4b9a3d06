#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// Positions a panel of keys.
inline constexpr std::int64_t kKeyPanel = 16;

/// The keys and values of one layer for all sequences, as F16 or F32.
///
/// A sequence is walked one key head at a time, from its first position to its last, and both arrays are read in the
/// order in which they lie:
///   keys    [slot][kv_head][panel][head_dim][16 positions]: a score is summed in a vector's lane, one position a lane,
///           so that no sum across lanes is needed
///   values  [slot][kv_head][position][padded_head_dim()]: an output is summed one dimension a lane; the padding is 0
/// Does not own its memory, which starts zeroed: the padding is never written.
struct KvLayer {
  DType dtype = DType::f16;
  std::int64_t slots = 0;
  std::int64_t capacity = 0;  ///< positions a sequence
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::byte* keys = nullptr;
  std::byte* values = nullptr;

  std::int64_t padded_head_dim() const { return (head_dim + 15) / 16 * 16; }
  std::int64_t padded_capacity() const { return (capacity + kKeyPanel - 1) / kKeyPanel * kKeyPanel; }

  /// Elements of all sequences.
  std::int64_t key_elements() const { return slots * kv_heads * padded_capacity() * head_dim; }
  std::int64_t value_elements() const { return slots * kv_heads * capacity * padded_head_dim(); }

  /// Where the key's first dimension lies; the others follow at distances of kKeyPanel.
  std::int64_t key_offset(std::int64_t slot, std::int64_t kv_head, std::int64_t position) const {
    const std::int64_t panel = position / kKeyPanel;
    return ((slot * kv_heads + kv_head) * padded_capacity() + panel * kKeyPanel) * head_dim + position % kKeyPanel;
  }
  std::int64_t value_offset(std::int64_t slot, std::int64_t kv_head, std::int64_t position) const {
    return ((slot * kv_heads + kv_head) * capacity + position) * padded_head_dim();
  }
};

/// Which sequence, and which position of it, each row of a batch is.
struct RowPlaces {
  std::span<const std::int32_t> slots;
  std::span<const std::int32_t> positions;
};

/// Stores k and v [rows, kv_heads * head_dim] at the rows' places, rounded to nearest even where the cache is F16.
void append_kv(const KvLayer& layer, MatrixView<const float> k, MatrixView<const float> v, const RowPlaces& places,
               ThreadTeam& team);

/// One element of the cache, for references and tests.
float key_at(const KvLayer& layer, std::int64_t slot, std::int64_t kv_head, std::int64_t position, std::int64_t dim);
float value_at(const KvLayer& layer, std::int64_t slot, std::int64_t kv_head, std::int64_t position, std::int64_t dim);

}  // namespace qpn8::cpu
