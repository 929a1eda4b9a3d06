#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/row_store.hpp"
#include "qpn8/half.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {

/// Rows of sequences with their memory.
class StoredRows {
 public:
  StoredRows(DType dtype, std::int64_t slots, std::int64_t per_slot, std::int64_t width)
      : memory_(static_cast<std::size_t>(slots * per_slot * width) * size_of(dtype)),
        store_{dtype, memory_.data(), slots, per_slot, width} {}

  const RowStore& store() const { return store_; }

  /// Row `index` of a sequence becomes row `row` of values.
  void set(std::int64_t slot, std::int64_t index, const Matrix<float>& values, std::int64_t row) {
    store_row(values.view().row(row), store_, slot, index);
  }

 private:
  std::vector<std::byte> memory_;
  RowStore store_;
};

/// Places of rows, as a batch has them.
struct Places {
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> positions;

  /// `rows` more tokens of a sequence from `first` on.
  void add(std::int32_t slot, std::int32_t first, std::int32_t rows) {
    for (std::int32_t t = 0; t < rows; ++t) {
      slots.push_back(slot);
      positions.push_back(first + t);
    }
  }
  RowPlaces view() const { return {slots, positions}; }
};

}  // namespace qpn8::cpu
