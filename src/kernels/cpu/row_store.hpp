#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"
#include "kernels/cpu/kv_layer.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// Rows that several sequences keep, as F16 or F32: [slot][per_slot][width] without gaps, in somebody else's memory.
struct RowStore {
  DType dtype = DType::f32;
  std::byte* data = nullptr;
  std::int64_t slots = 0;
  std::int64_t per_slot = 0;
  std::int64_t width = 0;

  std::byte* row(std::int64_t slot, std::int64_t index) const {
    return data + (slot * per_slot + index) * width * static_cast<std::int64_t>(size_of(dtype));
  }
};

/// Row t becomes row positions[t] % per_slot of its sequence, rounded to nearest even where the store is F16: a ring
/// that holds the last per_slot positions. Of rows that meet in one place the last one stays.
void store_rows(MatrixView<const float> x, const RowPlaces& places, const RowStore& store, ThreadTeam& team);

/// x, in row `index` of a sequence.
void store_row(std::span<const float> x, const RowStore& store, std::int64_t slot, std::int64_t index);

/// The row of position `position`, not after row t's own, of row t's sequence: in x, if the batch has it, else in
/// `kept` (F32, a ring of positions).
const float* row_at(MatrixView<const float> x, const RowPlaces& places, const RowStore& kept, std::int64_t t,
                    std::int64_t position);

/// One element, for references and tests.
float value_at(const RowStore& store, std::int64_t slot, std::int64_t index, std::int64_t column);

}  // namespace qpn8::cpu
