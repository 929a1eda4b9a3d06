#pragma once

#include "backend/backend.hpp"
#include "backend/cpu/memory.hpp"
#include "kernels/cpu/kv_layer.hpp"

namespace qpn8::cpu {

/// All layers' keys, then all layers' values; see KvLayer for the order within a layer.
class CpuKvCache : public KvCache {
 public:
  explicit CpuKvCache(const KvShape& shape);

  const KvShape& shape() const override { return shape_; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(keys_.size() + values_.size()); }

  KvLayer layer(std::int64_t index) const;

 private:
  KvShape shape_;
  KvLayer first_;
  Buffer keys_;
  Buffer values_;
};

}  // namespace qpn8::cpu
