#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "checkpoint/hybrid_config.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// What the block remembers of the sequences: their last tokens, and the convolution's last inputs.
struct NgramCache {
  OwnedTensor tokens;
  OwnedTensor history;
};

/// Embeddings of hashed n-grams, gated by the residual's streams and added to them.
class NgramBlock {
 public:
  /// `prefix` ends in "ple."; `rank` counts the layers that have one.
  NgramBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix, std::int64_t rank,
             const ModelConfig& config, const HybridConfig& details, std::int64_t max_rows);

  NgramCache make_cache(int slots) const;

  /// h [batch.rows, streams * hidden_size], in place.
  void forward(const Tensor& h, const Batch& batch, const NgramCache& cache);

  std::int64_t bytes() const { return key_->bytes() + value_->bytes(); }
  std::int64_t products_per_token() const { return products(*key_) + products(*value_); }

 private:
  /// Positions that the convolution looks back over.
  std::int64_t kept() const { return details_.orders * (details_.taps - 1); }

  Backend& backend_;
  HybridConfig::Ngrams details_;
  std::int64_t streams_;
  float eps_;
  std::unique_ptr<NgramEmbedding> table_;
  std::unique_ptr<Linear> key_;
  std::unique_ptr<Linear> value_;
  OwnedTensor key_norm_;
  OwnedTensor query_norm_;
  OwnedTensor conv_norm_;
  OwnedTensor taps_;
  OwnedTensor embedded_;
  OwnedTensor keys_;
  OwnedTensor queries_;  // and then what the convolution makes of them
  OwnedTensor value_out_;
  OwnedTensor gated_;
};

}  // namespace qpn8
