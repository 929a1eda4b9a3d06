#pragma once

#include "backend/backend.hpp"
#include "backend/cuda/memory.hpp"
#include "kernels/cuda/kv_layer.hpp"

namespace qpn8::cuda {

/// All layers' keys, then all layers' values; see KvLayer for the order within a layer.
class CudaKvCache : public KvCache {
 public:
  /// Error::unsupported for a width of heads that attention has no kernel for.
  explicit CudaKvCache(const KvShape& shape);

  const KvShape& shape() const override { return shape_; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(keys_.size() + values_.size()); }

  KvLayer layer(std::int64_t index) const;

 private:
  KvShape shape_;
  DeviceBuffer keys_;
  DeviceBuffer values_;
};

}  // namespace qpn8::cuda
