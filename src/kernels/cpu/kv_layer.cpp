#include "kernels/cpu/kv_layer.hpp"

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"
#include "qpn8/half.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kv_layer.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {
namespace {

/// One head's key and value at one position; `keys` is the key's first dimension in its panel.
template <class T>
void append_head(const float* key, const float* value, std::int64_t head_dim, T* keys, T* values) {
  for_vectors(static_cast<std::size_t>(head_dim), [&](auto d, std::size_t i) HWY_ATTR {
    store_rounded(d, hn::LoadU(d, value + i), values + i);
    T rounded[hn::MaxLanes(d)];
    store_rounded(d, hn::LoadU(d, key + i), rounded);
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) keys[(i + lane) * kKeyPanel] = rounded[lane];
  });
}

template <class T>
void append_rows(const KvLayer& layer, MatrixView<const float> k, MatrixView<const float> v, const RowPlaces& places) {
  for (std::int64_t t = 0; t < k.rows; ++t) {
    const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
    const std::int64_t position = places.positions[static_cast<std::size_t>(t)];
    check(slot >= 0 && slot < layer.slots && position >= 0 && position < layer.capacity, "a row has a place");
    for (std::int64_t head = 0; head < layer.kv_heads; ++head) {
      append_head(k.row(t).data() + head * layer.head_dim, v.row(t).data() + head * layer.head_dim, layer.head_dim,
                  reinterpret_cast<T*>(layer.keys) + layer.key_offset(slot, head, position),
                  reinterpret_cast<T*>(layer.values) + layer.value_offset(slot, head, position));
    }
  }
}

}  // namespace

void append_kernel(const KvLayer& layer, MatrixView<const float> k, MatrixView<const float> v,
                   const RowPlaces& places) {
  if (layer.dtype == DType::f32) return append_rows<float>(layer, k, v, places);
  append_rows<Half>(layer, k, v, places);
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {
namespace {

HWY_EXPORT(append_kernel);

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
    HWY_DYNAMIC_DISPATCH(append_kernel)
    (layer, k.row_range(begin, end - begin), v.row_range(begin, end - begin), part);
  });
}

float key_at(const KvLayer& layer, std::int64_t slot, std::int64_t kv_head, std::int64_t position, std::int64_t dim) {
  return element(layer, layer.keys, layer.key_offset(slot, kv_head, position) + dim * kKeyPanel);
}

float value_at(const KvLayer& layer, std::int64_t slot, std::int64_t kv_head, std::int64_t position, std::int64_t dim) {
  return element(layer, layer.values, layer.value_offset(slot, kv_head, position) + dim);
}

}  // namespace qpn8::cpu
#endif  // HWY_ONCE
