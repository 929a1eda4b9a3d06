#include "kernels/cpu/kv_layer.hpp"

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"
#include "qpn8/half.hpp"

namespace qpn8::cpu {
namespace {

void store(float value, float& to) { to = value; }
void store(float value, Half& to) { to = to_half(value); }

// Plain code: a token's keys and values are some thousand numbers, the weights read for it some hundred million.
template <class T>
void append_rows(const KvLayer& layer, MatrixView<const float> k, MatrixView<const float> v, const RowPlaces& places) {
  for (std::int64_t t = 0; t < k.rows; ++t) {
    const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
    const std::int64_t position = places.positions[static_cast<std::size_t>(t)];
    check(slot >= 0 && slot < layer.slots && position >= 0 && position < layer.capacity, "a row has a place");
    for (std::int64_t head = 0; head < layer.kv_heads; ++head) {
      const float* key = k.row(t).data() + head * layer.head_dim;
      const float* value = v.row(t).data() + head * layer.head_dim;
      T* keys = reinterpret_cast<T*>(layer.keys) + layer.key_offset(slot, head, position);
      T* values = reinterpret_cast<T*>(layer.values) + layer.value_offset(slot, head, position);
      for (std::int64_t i = 0; i < layer.head_dim; ++i) {
        store(key[i], keys[i * kKeyPanel]);
        store(value[i], values[i]);
      }
    }
  }
}

float element(const KvLayer& layer, const std::byte* data, std::int64_t offset) {
  if (layer.dtype == DType::f32) return reinterpret_cast<const float*>(data)[offset];
  return to_float(reinterpret_cast<const Half*>(data)[offset]);
}

}  // namespace

void append_kv(const KvLayer& layer, MatrixView<const float> k, MatrixView<const float> v, const RowPlaces& places,
               ThreadTeam& team) {
  check(k.cols == layer.kv_heads * layer.head_dim && v.cols == k.cols && v.rows == k.rows, "a row is all key heads");
  team.for_ranges(k.rows, row_grain(2 * k.cols), [&](std::int64_t begin, std::int64_t end) {
    const auto first = static_cast<std::size_t>(begin);
    const auto count = static_cast<std::size_t>(end - begin);
    const RowPlaces part{places.slots.subspan(first, count), places.positions.subspan(first, count)};
    const auto append = layer.dtype == DType::f32 ? append_rows<float> : append_rows<Half>;
    append(layer, k.row_range(begin, end - begin), v.row_range(begin, end - begin), part);
  });
}

float key_at(const KvLayer& layer, std::int64_t slot, std::int64_t kv_head, std::int64_t position, std::int64_t dim) {
  return element(layer, layer.keys, layer.key_offset(slot, kv_head, position) + dim * kKeyPanel);
}

float value_at(const KvLayer& layer, std::int64_t slot, std::int64_t kv_head, std::int64_t position, std::int64_t dim) {
  return element(layer, layer.values, layer.value_offset(slot, kv_head, position) + dim);
}

}  // namespace qpn8::cpu
