#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "checkpoint/deepseek_v4_config.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// The cos and sin of a pass's positions, and of their negatives.
struct LatentAngles {
  Tensor forward;
  Tensor backward;
  Tensor frequencies;
};

/// Entries of all sequences and the tokens that wait to be pooled into the next ones.
struct EntryCache {
  OwnedTensor pending;
  OwnedTensor entries;
  std::int64_t pending_per_slot = 0;
  std::int64_t entries_per_slot = 0;

  SequenceRows pending_rows() const { return {pending.tensor, pending_per_slot}; }
  SequenceRows entry_rows() const { return {entries.tensor, entries_per_slot}; }
};

/// What one layer keeps of all sequences.
struct LatentCache {
  OwnedTensor window;
  std::int64_t window_per_slot = 0;
  EntryCache seen;  ///< attended to
  EntryCache keys;  ///< by which the indexer chooses among them
};

/// Pools tokens into entries, by a softmax of gates over windows of tokens.
class Compressor {
 public:
  /// `prefix` ends in "compressor.", `planned` in "compressor.fused_wkv_wgate" names the projection in the plan.
  Compressor(const WeightLoader& loader, Backend& backend, const std::string& prefix, const std::string& planned,
             const DeepseekV4Config::Layer& kind, std::int64_t width, float eps, std::int64_t max_rows);

  EntryCache make_cache(int slots, std::int64_t capacity, DType dtype) const;
  void forward(const Tensor& x, const Tensor& frequencies, const Batch& batch, const EntryCache& cache);

  std::int64_t bytes() const { return projection_->bytes(); }
  std::int64_t products_per_token() const { return products(*projection_); }

 private:
  Backend& backend_;
  DeepseekV4Config::Layer kind_;
  std::int64_t width_;
  float eps_;
  std::unique_ptr<Linear> projection_;
  OwnedTensor gate_bias_;
  OwnedTensor norm_;
  OwnedTensor projected_;
};

/// Chooses which entries a token attends to, by keys and heads of its own.
class Indexer {
 public:
  /// `prefix` and `planned` end in "indexer.".
  Indexer(const WeightLoader& loader, Backend& backend, const std::string& prefix, const std::string& planned,
          const DeepseekV4Config& details, const DeepseekV4Config::Layer& kind, float eps, std::int64_t max_rows);

  EntryCache make_cache(int slots, std::int64_t capacity, DType dtype) const {
    return compressor_.make_cache(slots, capacity, dtype);
  }

  /// The chosen entries of each row; low is what the queries are made of.
  Tensor forward(const Tensor& x, const Tensor& low, const LatentAngles& angles, const Batch& batch,
                 const EntryCache& cache);

  std::int64_t bytes() const { return compressor_.bytes() + queries_->bytes() + weights_->bytes(); }
  std::int64_t products_per_token() const {
    return compressor_.products_per_token() + products(*queries_) + products(*weights_);
  }

 private:
  Backend& backend_;
  std::int64_t heads_;
  std::int64_t width_;
  std::int64_t ratio_;
  Compressor compressor_;
  std::unique_ptr<Linear> queries_;
  std::unique_ptr<Linear> weights_;
  OwnedTensor projected_queries_;
  OwnedTensor projected_weights_;
  OwnedTensor chosen_;
};

/// Attention of low rank whose keys are its values, one vector a position for all heads: over a sliding window, and
/// over entries that earlier tokens have been pooled into. This rank's heads, and the output groups that they form.
class LatentAttentionBlock {
 public:
  struct Options {
    std::int64_t heads = 0;  ///< of this rank
    std::int64_t head_dim = 0;
    std::int64_t hidden_size = 0;
    float eps = 1e-6F;
  };

  /// `layer` is its number.
  LatentAttentionBlock(const WeightLoader& loader, Backend& backend, std::size_t layer, const DeepseekV4Config& details,
                       const Options& options, std::int64_t max_rows);

  LatentCache make_cache(int slots, std::int64_t capacity, DType dtype) const;

  /// x and out [batch.rows, hidden_size]; appends the batch to the cache. out is this rank's share of a sum over ranks.
  void forward(const Tensor& x, const LatentAngles& angles, const Batch& batch, LatentCache& cache, const Tensor& out);

  const DeepseekV4Config::Layer& kind() const { return kind_; }
  std::int64_t bytes() const;
  std::int64_t products_per_token() const;
  /// Positions and entries that the token at `position` attends to, and those that the indexer compares.
  std::int64_t seen(std::int64_t position) const;
  std::int64_t compared(std::int64_t position) const;

 private:
  Backend& backend_;
  DeepseekV4Config::Layer kind_;
  Options options_;
  std::int64_t window_;
  std::int64_t q_rank_;
  std::int64_t topk_;
  std::int64_t max_rows_;
  std::unique_ptr<Linear> down_;  // to the queries' low rank, and to the one key
  std::unique_ptr<Linear> up_;    // queries
  std::unique_ptr<Linear> out_a_;
  std::unique_ptr<Linear> out_b_;
  OwnedTensor low_norm_;
  OwnedTensor key_norm_;
  OwnedTensor head_norm_;  // ones: a head's norm has no weight
  OwnedTensor sinks_;
  std::unique_ptr<Compressor> compressor_;
  std::unique_ptr<Indexer> indexer_;
  OwnedTensor lowered_;
  OwnedTensor queries_;
  OwnedTensor attended_;
  OwnedTensor grouped_;
};

}  // namespace qpn8
