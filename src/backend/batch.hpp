#pragma once

#include <cstdint>
#include <span>

#include "backend/tensor.hpp"

namespace qpn8 {

/// Consecutive tokens of one sequence within a batch.
struct BatchSpan {
  int slot = 0;                     ///< the sequence's place in the cache
  std::int64_t first_position = 0;  ///< tokens of the sequence that are in the cache already
  std::int64_t first_row = 0;       ///< row of the span's first token in the batch
  std::int64_t rows = 0;
};

/// The tokens of one forward pass: one span a sequence, in row order. What the kernels read lives on the device, so
/// that a recorded step can be replayed with other tokens.
struct Batch {
  Tensor ids;        ///< i32 [rows, 1], token ids
  Tensor positions;  ///< i32 [rows, 1], position of each token in its sequence
  Tensor slots;      ///< i32 [rows, 1], BatchSpan::slot of each token
  std::span<const BatchSpan> spans;
  std::int64_t rows = 0;
};

}  // namespace qpn8
