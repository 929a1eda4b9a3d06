#include "backend/cuda/kv_cache.hpp"

#include <fmt/format.h>

#include "backend/cpu/memory.hpp"
#include "base/check.hpp"
#include "kernels/cuda/attention.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cuda {

CudaKvCache::CudaKvCache(const KvShape& shape) : shape_(shape) {
  check(shape.dtype == DType::f16 || shape.dtype == DType::f32, "a KV cache is F16 or F32");
  if (shape.head_dim % 4 != 0 || shape.head_dim > kMaxHeadDim) {
    throw Error(Error::unsupported, fmt::format("head_dim {}: attention on a GPU needs a multiple of 4 up to {}",
                                                shape.head_dim, kMaxHeadDim));
  }
  const auto width = static_cast<std::int64_t>(size_of(shape.dtype));
  const auto bytes = static_cast<std::size_t>(cpu::size_product(
      {shape.layers, shape.slots, shape.kv_heads, shape.capacity, shape.head_dim, width}, "KV cache"));
  keys_ = DeviceBuffer(bytes, "KV cache");
  values_ = DeviceBuffer(bytes, "KV cache");
}

KvLayer CudaKvCache::layer(std::int64_t index) const {
  check(index >= 0 && index < shape_.layers, "a layer of the cache");
  const std::int64_t elements = shape_.slots * shape_.kv_heads * shape_.capacity * shape_.head_dim;
  const std::int64_t offset = index * elements * static_cast<std::int64_t>(size_of(shape_.dtype));
  return {.dtype = shape_.dtype,
          .slots = shape_.slots,
          .capacity = shape_.capacity,
          .kv_heads = shape_.kv_heads,
          .head_dim = shape_.head_dim,
          .keys = keys_.data() + offset,
          .values = values_.data() + offset};
}

}  // namespace qpn8::cuda
