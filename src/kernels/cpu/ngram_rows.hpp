#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.hpp"
#include "kernels/cpu/kv_layer.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// How the last tokens of a sequence choose rows of a table: for each n from 2 to `orders`, heads of its own.
struct NgramRule {
  std::vector<std::int64_t> multipliers;  ///< `orders` of them: of the token itself, the one before, ...
  std::vector<std::int64_t> sizes;        ///< rows of each head's table; as many heads for each n
  std::vector<std::int64_t> offsets;      ///< where each head's rows begin
  std::int64_t boundary = 0;              ///< the token that ends a text: nothing before it counts
};

/// The last `orders - 1` tokens of every sequence, [slot][position modulo that].
struct TokenHistory {
  std::int32_t* tokens = nullptr;
  std::int64_t slots = 0;
  std::int64_t per_slot = 0;
};

/// A table in its stored precision (F32, F16 or BF16), in parts of `rows_a_part` rows of which the last may have fewer.
struct NgramTable {
  DType dtype = DType::f32;
  std::vector<const std::byte*> parts;
  std::int64_t rows_a_part = 0;
  std::int64_t width = 0;
};

/// out[t] = the rows of the table that row t's n-grams choose, side by side, head after head, converted exactly; then
/// the rows' tokens become the sequences' history. A token s places back counts as the boundary if there is none, or if
/// any token between is the boundary. The row of a head is the exclusive or of the n tokens times their multipliers,
/// modulo the head's size, plus its offset.
void ngram_rows(const NgramTable& table, const NgramRule& rule, std::span<const std::int32_t> ids,
                const RowPlaces& places, const TokenHistory& history, MatrixView<float> out, ThreadTeam& team);

/// The rows that the last of these tokens chooses, a sequence from its beginning.
std::vector<std::int64_t> ngram_rows_reference(const NgramRule& rule, std::span<const std::int32_t> tokens);

}  // namespace qpn8::cpu
