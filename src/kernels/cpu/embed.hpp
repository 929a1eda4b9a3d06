#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// A table of embeddings in its stored precision: F32, F16 or BF16 [rows, cols].
struct EmbeddingTable {
  DType dtype = DType::f32;
  const std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< elements between rows
};

/// out[t] = table[ids[t]], converted exactly. Every id is in [0, table.rows).
void embed(const EmbeddingTable& table, std::span<const std::int32_t> ids, MatrixView<float> out, ThreadTeam& team);

/// out = row `row` of the table, converted exactly.
void embed_row(const EmbeddingTable& table, std::int64_t row, std::span<float> out);

void embed_reference(const EmbeddingTable& table, std::span<const std::int32_t> ids, MatrixView<float> out);

}  // namespace qpn8::cpu
