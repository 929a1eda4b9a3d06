#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "model/weights.hpp"

namespace qpn8 {

struct AttentionOptions {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool qk_norm = false;  ///< q and k are normalised a head before they are rotated
  float eps = 1e-6F;
};

/// Grouped-query attention with rotary positions: one fused q/k/v projection, optional q and k norm, output projection.
class AttentionBlock {
 public:
  /// `prefix` ends in "self_attn."; window as in AttentionShape.
  AttentionBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix, std::int64_t layer,
                 const AttentionOptions& options, std::int64_t window, std::int64_t max_rows);

  /// stream += attention(rms_norm(stream)), batch.rows rows; appends the batch to the cache.
  void forward(ResidualStream& stream, const RowNorm& norm, const Tensor& angles, const Batch& batch, KvCache& cache);

  std::int64_t bytes() const { return qkv_->bytes() + o_->bytes(); }
  std::int64_t products_per_token() const { return products(*qkv_) + products(*o_); }

 private:
  Backend& backend_;
  std::int64_t layer_;
  AttentionOptions options_;
  AttentionShape shape_;
  std::unique_ptr<Linear> qkv_;
  std::unique_ptr<Linear> o_;
  OwnedTensor q_norm_;
  OwnedTensor k_norm_;
  OwnedTensor projected_;  // q, k and v side by side
  OwnedTensor attended_;
};

}  // namespace qpn8
