#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "checkpoint/hybrid_config.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// What an indexer remembers of the sequences: an entry a block of tokens, and the keys that later entries need.
struct IndexCache {
  OwnedTensor pending;
  OwnedTensor entries;
  std::int64_t entries_per_slot = 0;
};

/// Grouped-query attention whose output is gated, over the whole context or over the blocks that an indexer chooses.
class GatedAttentionBlock {
 public:
  /// `prefix` ends in "self_attn."; `layer` is its number in the cache of keys and values.
  GatedAttentionBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix, std::int64_t layer,
                      const ModelConfig& config, const HybridConfig& details, std::int64_t max_rows);

  /// Nothing without an indexer.
  IndexCache make_cache(int slots, std::int64_t capacity, DType dtype) const;

  /// x and out [batch.rows, hidden_size].
  void forward(const Tensor& x, const Tensor& angles, const Tensor& frequencies, const Batch& batch, KvCache& kv,
               const IndexCache& index, const Tensor& out);

  std::int64_t bytes() const;
  std::int64_t products_per_token() const;
  /// Positions whose keys and values, and entries that, the token at `position` reads.
  std::int64_t seen(std::int64_t position) const;
  std::int64_t compared(std::int64_t position) const;

 private:
  Tensor choose(const Tensor& x, const Tensor& angles, const Tensor& frequencies, const Batch& batch,
                const IndexCache& index);

  Backend& backend_;
  std::int64_t layer_;
  AttentionShape shape_;
  std::optional<HybridConfig::Indexer> indexer_;
  float eps_;
  std::unique_ptr<Linear> qkv_;  // q | gate | k | v
  std::unique_ptr<Linear> o_;
  std::unique_ptr<Linear> index_;  // queries | key
  OwnedTensor q_norm_;
  OwnedTensor k_norm_;
  OwnedTensor index_q_norm_;
  OwnedTensor index_k_norm_;
  OwnedTensor equal_weights_;  // of the indexer's heads
  OwnedTensor projected_;
  OwnedTensor attended_;
  OwnedTensor indexed_;
  OwnedTensor chosen_;
};

}  // namespace qpn8
