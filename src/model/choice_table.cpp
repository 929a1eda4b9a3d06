#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "model/weights.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

std::int64_t integer_at(const CheckpointTensor& tensor, std::int64_t index) {
  if (tensor.dtype == DType::i32) {
    std::int32_t value = 0;
    std::memcpy(&value, tensor.bytes.data() + index * static_cast<std::int64_t>(sizeof(value)), sizeof(value));
    return value;
  }
  std::int64_t value = 0;
  std::memcpy(&value, tensor.bytes.data() + index * static_cast<std::int64_t>(sizeof(value)), sizeof(value));
  return value;
}

}  // namespace

OwnedTensor WeightLoader::choices(const std::string& tensor, std::int64_t rows, std::int64_t cols,
                                  std::int64_t choices) const {
  const std::array<std::int64_t, 2> shape = {rows, cols};
  const CheckpointTensor& stored_table = source_.checkpoint->tensor(stored(tensor), shape);
  if (stored_table.dtype != DType::i64 && stored_table.dtype != DType::i32) {
    throw Error(Error::unsupported, fmt::format("{}: a table of type {}; I64 or I32 is needed", stored_table.name,
                                                to_string(stored_table.dtype)));
  }
  std::vector<std::int32_t> table(static_cast<std::size_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = table.begin() + static_cast<std::ptrdiff_t>(row * cols);
    for (std::int64_t col = 0; col < cols; ++col) {
      const std::int64_t value = integer_at(stored_table, row * cols + col);
      const auto end = begin + static_cast<std::ptrdiff_t>(col);
      if (value < 0 || value >= choices || std::find(begin, end, static_cast<std::int32_t>(value)) != end) {
        throw Error(Error::bad_value, fmt::format("{}: row {} column {} is {}, expected a number from 0 to {} that is "
                                                  "not in the row before",
                                                  stored_table.name, row, col, value, choices - 1));
      }
      *end = static_cast<std::int32_t>(value);
    }
  }
  OwnedTensor loaded = source_.backend->allocate(DType::i32, rows, cols);
  source_.backend->write(loaded.tensor, std::as_bytes(std::span(table)));
  return loaded;
}

}  // namespace qpn8
