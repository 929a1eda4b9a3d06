#include "model/gated_attention_block.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace qpn8 {

GatedAttentionBlock::GatedAttentionBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix,
                                         std::int64_t layer, const ModelConfig& config, const HybridConfig& details,
                                         std::int64_t max_rows)
    : backend_(backend),
      layer_(layer),
      shape_{.heads = config.heads,
             .kv_heads = config.kv_heads,
             .head_dim = config.head_dim,
             .scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim))},
      indexer_(details.indexer),
      eps_(static_cast<float>(config.rms_norm_eps)),
      qkv_(loader.linear(prefix + "qkv_proj")),
      o_(loader.linear(prefix + "o_proj")),
      q_norm_(loader.centred_row(prefix + "q_norm.weight", config.head_dim)),
      k_norm_(loader.centred_row(prefix + "k_norm.weight", config.head_dim)),
      projected_(backend.allocate(backend.activation_type(), max_rows, qkv_->n())),
      attended_(backend.allocate(backend.activation_type(), max_rows, o_->k())) {
  if (!indexer_) return;
  index_ = loader.linear(prefix + "indexer.index_qk_proj");
  index_q_norm_ = loader.centred_row(prefix + "indexer.q_layernorm.weight", indexer_->width);
  index_k_norm_ = loader.centred_row(prefix + "indexer.k_layernorm.weight", indexer_->width);
  indexed_ = backend.allocate(backend.activation_type(), max_rows, index_->n());
  chosen_ = backend.allocate(DType::i32, max_rows, indexer_->budget / indexer_->ratio);
  equal_weights_ = backend.allocate(DType::f32, max_rows, indexer_->heads);
  const std::vector<float> ones(static_cast<std::size_t>(max_rows * indexer_->heads), 1.0F);
  backend.write(equal_weights_.tensor, std::as_bytes(std::span(ones)));
}

IndexCache GatedAttentionBlock::make_cache(int slots, std::int64_t capacity, DType dtype) const {
  IndexCache cache;
  if (!indexer_) return cache;
  cache.entries_per_slot = std::max<std::int64_t>(capacity / indexer_->ratio, 1);
  cache.pending = backend_.allocate(DType::f32, slots * indexer_->ratio, indexer_->width);
  cache.entries = backend_.allocate(dtype, slots * cache.entries_per_slot, indexer_->width);
  return cache;
}

Tensor GatedAttentionBlock::choose(const Tensor& x, const Tensor& angles, const Tensor& frequencies, const Batch& batch,
                                   const IndexCache& index) {
  const Tensor indexed = indexed_.tensor.row_range(0, x.rows);
  const Tensor queries = indexed.col_range(0, indexer_->heads * indexer_->width);
  const Tensor chosen = chosen_.tensor.row_range(0, x.rows);
  const SequenceRows entries = {index.entries.tensor, index.entries_per_slot};
  backend_.linear(*index_, x, indexed);
  backend_.head_rms_norm(queries, index_q_norm_.tensor, eps_);
  backend_.rope(queries, indexer_->width, angles, RopePairing::halves);
  backend_.mean_pool({.x = indexed.col_range(queries.cols, indexer_->width),
                      .ratio = indexer_->ratio,
                      .eps = eps_,
                      .norm = index_k_norm_.tensor,
                      .frequencies = frequencies,
                      .pending = {index.pending.tensor, indexer_->ratio},
                      .entries = entries},
                     batch);
  // The published scores have a positive factor besides, which does not change the choice.
  backend_.select_entries({.q = queries,
                           .weights = equal_weights_.tensor.row_range(0, x.rows),
                           .heads = indexer_->heads,
                           .ratio = indexer_->ratio,
                           .keys = entries},
                          batch, chosen);
  return chosen;
}

void GatedAttentionBlock::forward(const Tensor& x, const Tensor& angles, const Tensor& frequencies, const Batch& batch,
                                  KvCache& kv, const IndexCache& index, const Tensor& out) {
  const std::int64_t q_width = shape_.heads * shape_.head_dim;
  const std::int64_t kv_width = shape_.kv_heads * shape_.head_dim;
  const Tensor projected = projected_.tensor.row_range(0, x.rows);
  const Tensor attended = attended_.tensor.row_range(0, x.rows);
  const HeadInputs heads = {.q = projected.col_range(0, q_width),
                            .k = projected.col_range(2 * q_width, kv_width),
                            .v = projected.col_range(2 * q_width + kv_width, kv_width),
                            .head_dim = shape_.head_dim,
                            .q_norm = &q_norm_.tensor,
                            .k_norm = &k_norm_.tensor,
                            .eps = eps_,
                            .angles = angles,
                            .pairing = RopePairing::halves};
  backend_.linear(*qkv_, x, projected);
  if (indexer_) {
    const Tensor chosen = choose(x, angles, frequencies, batch, index);
    backend_.prepare_heads(kv, layer_, heads, batch);
    backend_.block_attention(kv, layer_, heads.q, batch, chosen, {shape_, indexer_->ratio}, attended);
  } else {
    backend_.attend(kv, layer_, heads, batch, shape_, attended);
  }
  backend_.multiply_by_gate(attended, projected.col_range(q_width, q_width));
  backend_.linear(*o_, attended, out);
}

std::int64_t GatedAttentionBlock::bytes() const { return qkv_->bytes() + o_->bytes() + (index_ ? index_->bytes() : 0); }

std::int64_t GatedAttentionBlock::products_per_token() const {
  return products(*qkv_) + products(*o_) + (index_ ? products(*index_) : 0);
}

std::int64_t GatedAttentionBlock::seen(std::int64_t position) const {
  const std::int64_t all = position + 1;
  if (!indexer_) return all;
  return std::min(all / indexer_->ratio * indexer_->ratio, indexer_->budget) + all % indexer_->ratio;
}

std::int64_t GatedAttentionBlock::compared(std::int64_t position) const {
  if (!indexer_) return 0;
  const std::int64_t blocks = (position + 1) / indexer_->ratio;
  return blocks * indexer_->ratio > indexer_->budget ? blocks : 0;
}

}  // namespace qpn8
