#include "backend/cpu/kv_cache.hpp"

#include "base/check.hpp"

namespace qpn8::cpu {

CpuKvCache::CpuKvCache(const KvShape& shape) : shape_(shape) {
  check(shape.dtype == DType::f16 || shape.dtype == DType::f32, "a KV cache is F16 or F32");
  check(shape.layers >= 0 && shape.slots >= 1 && shape.capacity >= 1, "a KV cache has room for a token");
  first_ = {.dtype = shape.dtype,
            .slots = shape.slots,
            .capacity = shape.capacity,
            .kv_heads = shape.kv_heads,
            .head_dim = shape.head_dim};
  const auto width = static_cast<std::int64_t>(size_of(shape.dtype));
  constexpr std::string_view kWhat = "KV cache";
  // The larger of both sides first, so that the products within KvLayer cannot overflow.
  size_product(
      {shape.layers + 1, shape.slots, shape.kv_heads, shape.capacity + kKeyPanel, first_.padded_head_dim(), width},
      kWhat);
  keys_ =
      allocate_buffer(size_product({shape.layers, first_.key_elements(), width}, kWhat), kWhat, Buffer::Pages::small);
  values_ =
      allocate_buffer(size_product({shape.layers, first_.value_elements(), width}, kWhat), kWhat, Buffer::Pages::small);
  first_.keys = keys_.data();
  first_.values = values_.data();
}

KvLayer CpuKvCache::layer(std::int64_t index) const {
  check(index >= 0 && index < shape_.layers, "a layer of the cache");
  const auto width = static_cast<std::int64_t>(size_of(shape_.dtype));
  KvLayer layer = first_;
  layer.keys += index * layer.key_elements() * width;
  layer.values += index * layer.value_elements() * width;
  return layer;
}

}  // namespace qpn8::cpu
