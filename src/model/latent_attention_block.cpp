#include "model/latent_attention_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace qpn8 {

LatentAttentionBlock::LatentAttentionBlock(const WeightLoader& loader, Backend& backend, std::size_t layer,
                                           const DeepseekV4Config& details, const Options& options,
                                           std::int64_t max_rows)
    : backend_(backend),
      kind_(details.layers[layer]),
      options_(options),
      window_(details.window),
      q_rank_(details.q_rank),
      topk_(details.index_topk),
      max_rows_(max_rows) {
  const std::string prefix = fmt::format("layers.{}.attn.", layer);
  const std::string planned = "model." + prefix;
  down_ = loader.linear(planned + "fused_wqa_wkv");
  up_ = loader.linear(planned + "wq_b");
  out_a_ = loader.linear(planned + "wo_a");
  out_b_ = loader.linear(planned + "wo_b");
  low_norm_ = loader.row(prefix + "q_norm.weight", details.q_rank);
  key_norm_ = loader.row(prefix + "kv_norm.weight", options.head_dim);
  head_norm_ = loader.row(std::vector<float>(static_cast<std::size_t>(options.head_dim), 1.0F));
  sinks_ = loader.row_share(prefix + "attn_sink", options.heads);
  if (kind_.attention != CompressedAttention::none) {
    compressor_ =
        std::make_unique<Compressor>(loader, backend, prefix + "compressor.", planned + "compressor.fused_wkv_wgate",
                                     kind_, options.head_dim, options.eps, max_rows);
  }
  if (kind_.attention == CompressedAttention::sparse) {
    indexer_ = std::make_unique<Indexer>(loader, backend, prefix + "indexer.", planned + "indexer.", details, kind_,
                                         options.eps, max_rows);
  }
  const DType type = backend.activation_type();
  lowered_ = backend.allocate(type, max_rows, down_->n());
  queries_ = backend.allocate(type, max_rows, up_->n());
  attended_ = backend.allocate(type, max_rows, up_->n());
  grouped_ = backend.allocate(type, max_rows, out_a_->n());
}

LatentCache LatentAttentionBlock::make_cache(int slots, std::int64_t capacity, DType dtype) const {
  LatentCache cache;
  // A pass appends all its rows before the first of them looks back.
  cache.window_per_slot = std::min(capacity, window_ - 1 + max_rows_);
  cache.window = backend_.allocate(dtype, slots * cache.window_per_slot, options_.head_dim);
  if (compressor_) cache.seen = compressor_->make_cache(slots, capacity, dtype);
  if (indexer_) cache.keys = indexer_->make_cache(slots, capacity, dtype);
  return cache;
}

void LatentAttentionBlock::forward(const Tensor& x, const LatentAngles& angles, const Batch& batch, LatentCache& cache,
                                   const Tensor& out) {
  const Tensor lowered = lowered_.tensor.row_range(0, x.rows);
  const Tensor low = lowered.col_range(0, q_rank_);
  const Tensor key = lowered.col_range(q_rank_, options_.head_dim);
  const Tensor queries = queries_.tensor.row_range(0, x.rows);
  const Tensor attended = attended_.tensor.row_range(0, x.rows);
  const Tensor grouped = grouped_.tensor.row_range(0, x.rows);

  backend_.linear(*down_, x, lowered);
  backend_.rms_norm(low, low_norm_.tensor, options_.eps, low);
  backend_.rms_norm(key, key_norm_.tensor, options_.eps, key);
  backend_.linear(*up_, low, queries);
  backend_.head_rms_norm(queries, head_norm_.tensor, options_.eps);
  backend_.rope_tails(queries, options_.head_dim, angles.forward);
  backend_.rope_tails(key, options_.head_dim, angles.forward);
  backend_.store_rows(key, batch, {cache.window.tensor, cache.window_per_slot});
  if (compressor_) compressor_->forward(x, angles.frequencies, batch, cache.seen);
  LatentInputs inputs = {.q = queries,
                         .window = {cache.window.tensor, cache.window_per_slot},
                         .entries = cache.seen.entry_rows(),
                         .chosen = {.dtype = DType::i32},
                         .sinks = sinks_.tensor,
                         .heads = options_.heads,
                         .window_size = window_,
                         .ratio = std::max<std::int64_t>(kind_.ratio, 1),
                         .scale = 1.0F / std::sqrt(static_cast<float>(options_.head_dim))};
  if (indexer_) inputs.chosen = indexer_->forward(x, low, angles, batch, cache.keys);
  backend_.latent_attention(inputs, batch, attended);
  // Values carry the rotation of their position; turning back by the query's leaves the distance.
  backend_.rope_tails(attended, options_.head_dim, angles.backward);
  backend_.linear(*out_a_, attended, grouped);
  backend_.linear(*out_b_, grouped, out);
}

std::int64_t LatentAttentionBlock::bytes() const {
  std::int64_t bytes = down_->bytes() + up_->bytes() + out_a_->bytes() + out_b_->bytes();
  if (compressor_) bytes += compressor_->bytes();
  if (indexer_) bytes += indexer_->bytes();
  return bytes;
}

std::int64_t LatentAttentionBlock::products_per_token() const {
  std::int64_t sum = products(*down_) + products(*up_) + products(*out_a_) + products(*out_b_);
  if (compressor_) sum += compressor_->products_per_token();
  if (indexer_) sum += indexer_->products_per_token();
  return sum;
}

std::int64_t LatentAttentionBlock::seen(std::int64_t position) const {
  std::int64_t entries = kind_.ratio > 0 ? (position + 1) / kind_.ratio : 0;
  if (indexer_) entries = std::min(entries, topk_);
  return std::min(window_, position + 1) + entries;
}

std::int64_t LatentAttentionBlock::compared(std::int64_t position) const {
  return indexer_ ? (position + 1) / kind_.ratio : 0;
}

}  // namespace qpn8
