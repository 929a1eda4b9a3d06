#pragma once

#include <vector>

#include "kernels/cpu/kv_layer.hpp"
#include "support/numbers.hpp"

namespace qpn8::test {

/// One layer of a KV cache with its memory.
class KvStore {
 public:
  KvStore(DType dtype, std::int64_t slots, std::int64_t capacity, std::int64_t kv_heads, std::int64_t head_dim) {
    layer_ = {.dtype = dtype, .slots = slots, .capacity = capacity, .kv_heads = kv_heads, .head_dim = head_dim};
    keys_.resize(static_cast<std::size_t>(layer_.key_elements()) * size_of(dtype));
    values_.resize(static_cast<std::size_t>(layer_.value_elements()) * size_of(dtype));
    layer_.keys = keys_.data();
    layer_.values = values_.data();
  }

  const cpu::KvLayer& layer() const { return layer_; }

  /// Rows of k and v become positions first, first + 1, ... of the slot.
  void append(std::int32_t slot, std::int64_t first, const Matrix<float>& k, const Matrix<float>& v) {
    std::vector<std::int32_t> slots(static_cast<std::size_t>(k.rows()), slot);
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < k.rows(); ++i) positions.push_back(static_cast<std::int32_t>(first + i));
    ThreadTeam team(2);
    cpu::append_kv(layer_, k.view(), v.view(), {slots, positions}, team);
  }

  /// Gaussian keys and values at positions [0, count).
  void fill(std::int32_t slot, std::int64_t count, unsigned seed) {
    const std::int64_t cols = layer_.kv_heads * layer_.head_dim;
    append(slot, 0, gaussian(count, cols, seed), gaussian(count, cols, seed + 1));
  }

 private:
  cpu::KvLayer layer_;
  std::vector<std::byte> keys_;
  std::vector<std::byte> values_;
};

}  // namespace qpn8::test
