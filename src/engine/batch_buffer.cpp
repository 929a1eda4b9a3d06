#include "engine/batch_buffer.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace qpn8 {

BatchBuffer::BatchBuffer(Backend& backend, std::int64_t max_rows)
    : backend_(backend),
      max_rows_(max_rows),
      ids_(backend.allocate(DType::i32, max_rows, 1)),
      positions_(backend.allocate(DType::i32, max_rows, 1)),
      slots_(backend.allocate(DType::i32, max_rows, 1)),
      logit_rows_(backend.allocate(DType::i32, max_rows, 1)),
      staging_(static_cast<std::size_t>(max_rows)) {}

void BatchBuffer::write(const OwnedTensor& target, std::span<const std::int32_t> values) {
  backend_.write(target.tensor.row_range(0, static_cast<std::int64_t>(values.size())), std::as_bytes(values));
}

const Batch& BatchBuffer::fill(int slot, std::int64_t first_position, std::span<const TokenId> ids) {
  const auto rows = static_cast<std::int64_t>(ids.size());
  check(rows >= 1 && rows <= max_rows_, "a batch has a row and fits its buffer");
  const std::span<std::int32_t> staged = std::span(staging_).first(ids.size());
  write(ids_, ids);
  std::iota(staged.begin(), staged.end(), static_cast<std::int32_t>(first_position));
  write(positions_, staged);
  std::fill(staged.begin(), staged.end(), slot);
  write(slots_, staged);

  span_ = {.slot = slot, .first_position = first_position, .first_row = 0, .rows = rows};
  batch_ = {.ids = ids_.tensor.row_range(0, rows),
            .positions = positions_.tensor.row_range(0, rows),
            .slots = slots_.tensor.row_range(0, rows),
            .spans = {&span_, 1},
            .rows = rows};
  return batch_;
}

Tensor BatchBuffer::last_rows(std::int64_t count) {
  check(count >= 0 && count <= batch_.rows, "a batch has the rows that logits are wanted of");
  const std::span<std::int32_t> staged = std::span(staging_).first(static_cast<std::size_t>(count));
  std::iota(staged.begin(), staged.end(), static_cast<std::int32_t>(batch_.rows - count));
  if (count > 0) write(logit_rows_, staged);
  return logit_rows_.tensor.row_range(0, count);
}

}  // namespace qpn8
