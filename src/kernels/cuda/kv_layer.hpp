#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.hpp"

namespace qpn8::cuda {

/// Widest head that the kernels have lanes for.
inline constexpr std::int64_t kMaxHeadDim = 256;

/// The keys and values of one layer in device memory, each [slot][kv_head][position][head_dim] of F16 or F32: one key
/// head of one sequence is read from its first position to its last without gaps.
struct KvLayer {
  DType dtype = DType::f16;
  std::int64_t slots = 0;
  std::int64_t capacity = 0;  ///< positions a sequence
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
};

/// Which sequence, and which position of it, each row of a batch is: i32 a row, in device memory.
struct RowPlaces {
  const std::int32_t* slots = nullptr;
  const std::int32_t* positions = nullptr;
};

}  // namespace qpn8::cuda
