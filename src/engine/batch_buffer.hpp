#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/batch.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {

/// Device memory for the token ids, positions and slots of a forward pass, filled anew for each one. Allocates only
/// when it is made.
class BatchBuffer {
 public:
  BatchBuffer(Backend& backend, std::int64_t max_rows);

  /// A batch of one sequence: `ids` at positions first_position, first_position + 1, ... At least one id and at most
  /// max_rows. The batch is valid until the next fill.
  const Batch& fill(int slot, std::int64_t first_position, std::span<const TokenId> ids);

  /// The batch of the last fill.
  const Batch& batch() const { return batch_; }

  /// Row numbers of that batch, for Model::forward: the last `count` rows; count may be 0.
  Tensor last_rows(std::int64_t count);

  std::int64_t max_rows() const { return max_rows_; }

 private:
  void write(const OwnedTensor& target, std::span<const std::int32_t> values);

  Backend& backend_;
  std::int64_t max_rows_;
  OwnedTensor ids_;
  OwnedTensor positions_;
  OwnedTensor slots_;
  OwnedTensor logit_rows_;
  std::vector<std::int32_t> staging_;
  BatchSpan span_;
  Batch batch_;
};

}  // namespace qpn8
