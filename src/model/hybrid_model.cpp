#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "model/delta_block.hpp"
#include "model/finite_probe.hpp"
#include "model/gated_attention_block.hpp"
#include "model/hybrid.hpp"
#include "model/hybrid_feed_forward.hpp"
#include "model/ngram_block.hpp"
#include "model/residual_connection.hpp"
#include "model/rope.hpp"

namespace qpn8 {
namespace {

std::int64_t stored_bytes(const Tensor& tensor) {
  return tensor.rows * tensor.cols * static_cast<std::int64_t>(size_of(tensor.dtype));
}

/// One of `linear` and `full`.
struct HybridLayer {
  std::unique_ptr<NgramBlock> ngrams;  // null where a layer has none
  std::unique_ptr<ResidualConnection> attention_connection;
  std::unique_ptr<DeltaBlock> linear;
  std::unique_ptr<GatedAttentionBlock> full;
  std::unique_ptr<ResidualConnection> mlp_connection;
  std::unique_ptr<HybridFeedForward> mlp;

  std::int64_t attention_bytes() const { return linear ? linear->bytes() : full->bytes(); }
  std::int64_t bytes_beside_experts() const {
    return attention_connection->bytes() + attention_bytes() + mlp_connection->bytes() + (ngrams ? ngrams->bytes() : 0);
  }
  std::int64_t products_per_token() const {
    return attention_connection->products_per_token() +
           (linear ? linear->products_per_token() : full->products_per_token()) + mlp_connection->products_per_token() +
           mlp->products_per_token() + (ngrams ? ngrams->products_per_token() : 0);
  }
};

class HybridCache : public Cache {
 public:
  /// What a layer keeps; the parts that it has no use for are empty.
  struct LayerCache {
    DeltaCache delta;
    IndexCache index;
    NgramCache ngrams;
  };

  HybridCache(std::unique_ptr<KvCache> kv, std::vector<LayerCache> layers, const std::vector<HybridLayer>& model)
      : kv_(std::move(kv)), layers_(std::move(layers)), model_(model) {}

  /// What a position reads was written at positions before it, and before the first there is nothing: operators know
  /// that by the position.
  void reset(int /*slot*/) override {}

  std::int64_t bytes() const override {
    std::int64_t sum = kv_->bytes();
    for (const LayerCache& layer : layers_) {
      for (const OwnedTensor* tensor : {&layer.delta.history, &layer.delta.states, &layer.index.pending,
                                        &layer.index.entries, &layer.ngrams.tokens, &layer.ngrams.history}) {
        sum += stored_bytes(tensor->tensor);
      }
    }
    return sum;
  }

  std::int64_t bytes_read(std::int64_t context) const override {
    const KvShape& shape = kv_->shape();
    const std::int64_t pair = 2 * shape.kv_heads * shape.head_dim * static_cast<std::int64_t>(size_of(shape.dtype));
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const LayerCache& layer = layers_[i];
      sum += stored_bytes(layer.delta.history.tensor) / shape.slots +
             stored_bytes(layer.delta.states.tensor) / shape.slots +
             stored_bytes(layer.ngrams.history.tensor) / shape.slots;
      if (!model_[i].full) continue;
      const Tensor& entries = layer.index.entries.tensor;
      sum += model_[i].full->seen(context - 1) * pair +
             model_[i].full->compared(context - 1) * entries.cols * static_cast<std::int64_t>(size_of(entries.dtype));
    }
    return sum;
  }

  KvCache& kv() { return *kv_; }
  const LayerCache& layer(std::size_t index) const { return layers_[index]; }

 private:
  std::unique_ptr<KvCache> kv_;
  std::vector<LayerCache> layers_;
  const std::vector<HybridLayer>& model_;
};

class HybridDecoder : public Model {
 public:
  HybridDecoder(const ModelSource& source, HybridConfig details)
      : config_(*source.config),
        details_(std::move(details)),
        backend_(*source.backend),
        max_rows_(source.max_rows),
        width_(std::max<std::int64_t>(details_.streams, 1) * config_.hidden_size),
        probe_(backend_, max_rows_) {
    const WeightLoader loader(source);
    const RopeFrequencies rope = rope_frequencies(config_);
    frequencies_ = loader.row(rope.frequencies);
    rope_scale_ = rope.scale;
    embedding_ = loader.table("model.embed_tokens.weight", config_.vocab_size, config_.hidden_size);
    // The largest matrix while little else is in memory: what it is packed from stays there until it is.
    load_head(loader);
    if (details_.streams > 0) gated_scratch_ = std::make_unique<GatedScratch>(backend_, streams(), max_rows_);
    for (std::size_t i = 0; i < details_.layers.size(); ++i) layers_.push_back(load_layer(loader, i));
    last_ = details_.streams > 0 ? connection(loader, "model.hyper_connection_mixer.", GatedConnection::Kind::head)
                                 : normed(loader, "model.norm.weight");
    const DType type = backend_.activation_type();
    hidden_ = backend_.allocate(type, max_rows_, width_);
    chosen_ = backend_.allocate(type, max_rows_, width_);
    read_ = backend_.allocate(type, max_rows_, config_.hidden_size);
    written_ = backend_.allocate(type, max_rows_, config_.hidden_size);
    angles_ = backend_.allocate(DType::f32, max_rows_, 2 * frequencies_.tensor.cols);
  }

  std::int64_t vocab_size() const override { return config_.vocab_size; }

  std::unique_ptr<Cache> make_cache(int slots, std::int64_t capacity, DType kv_dtype) override {
    std::vector<HybridCache::LayerCache> caches(layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].linear) caches[i].delta = layers_[i].linear->make_cache(slots);
      if (layers_[i].full) caches[i].index = layers_[i].full->make_cache(slots, capacity, kv_dtype);
      if (layers_[i].ngrams) caches[i].ngrams = layers_[i].ngrams->make_cache(slots);
    }
    return std::make_unique<HybridCache>(backend_.make_kv_cache({.layers = full_layers_,
                                                                 .slots = slots,
                                                                 .capacity = capacity,
                                                                 .kv_heads = config_.kv_heads,
                                                                 .head_dim = config_.head_dim,
                                                                 .dtype = kv_dtype}),
                                         std::move(caches), layers_);
  }

  void forward(const Batch& batch, Cache& cache, const Tensor& logit_rows, const Tensor& logits) override {
    check(batch.rows >= 1 && batch.rows <= max_rows_ && logit_rows.rows <= max_rows_, "a batch fits the scratch");
    auto& caches = static_cast<HybridCache&>(cache);
    const Tensor hidden = hidden_.tensor.row_range(0, batch.rows);
    for (std::int64_t first = 0; first < width_; first += config_.hidden_size) {
      backend_.embed(embedding_.tensor, batch.ids, hidden.col_range(first, config_.hidden_size));
    }
    const Tensor angles = angles_.tensor.row_range(0, batch.rows);
    backend_.rope_angles(batch.positions, frequencies_.tensor, rope_scale_, angles);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      run_layer(layers_[i], batch, caches.kv(), caches.layer(i), hidden);
      if (check_finite_) probe_.require(hidden, fmt::format("model.layers.{}", i));
    }
    const Tensor chosen = chosen_.tensor.row_range(0, logit_rows.rows);
    const Tensor last = read_.tensor.row_range(0, logit_rows.rows);
    backend_.gather_rows(hidden, logit_rows, chosen);
    if (logit_rows.rows > 0) last_->read(chosen, last);
    backend_.linear(*head_, last, logits);
    if (check_finite_) probe_.require(logits, "lm_head");
  }

  std::int64_t weight_bytes_per_token() const override {
    std::int64_t bytes = head_->bytes() + last_->bytes();
    for (const HybridLayer& layer : layers_) bytes += layer.bytes_beside_experts() + layer.mlp->bytes_per_token();
    return bytes;
  }

  std::int64_t weight_bytes() const override {
    std::int64_t bytes = stored_bytes(embedding_.tensor) + last_->bytes();
    if (!head_is_shared_) bytes += head_->bytes();
    for (const HybridLayer& layer : layers_) bytes += layer.bytes_beside_experts() + layer.mlp->bytes();
    return bytes;
  }

  double prefill_flop(std::int64_t tokens) const override {
    std::int64_t weights = 0;
    double rest = 0;
    // The delta rule reads its state for the key and the query, and writes it.
    const auto delta = static_cast<double>(details_.value_heads * details_.key_dim * details_.value_dim);
    for (const HybridLayer& layer : layers_) {
      weights += layer.products_per_token();
      if (layer.linear) rest += 6.0 * delta * static_cast<double>(tokens);
      if (layer.full) rest += scores_of(*layer.full, tokens);
    }
    const auto last = static_cast<double>(products(*head_) + last_->products_per_token());
    return 2.0 * (static_cast<double>(weights) * static_cast<double>(tokens) + last) + rest;
  }

 private:
  float eps() const { return static_cast<float>(config_.rms_norm_eps); }

  GatedStreams streams() const {
    return {.streams = details_.streams,
            .hidden_size = config_.hidden_size,
            .low_rank = details_.low_rank,
            .low_rows = down_inject_rows(details_),
            .eps = eps()};
  }

  double scores_of(const GatedAttentionBlock& attention, std::int64_t tokens) const {
    const auto head_values = static_cast<double>(config_.heads * config_.head_dim);
    const double index_values =
        details_.indexer ? static_cast<double>(details_.indexer->heads * details_.indexer->width) : 0.0;
    double flop = 0;
    for (std::int64_t position = 0; position < tokens; ++position) {
      flop += 4.0 * static_cast<double>(attention.seen(position)) * head_values +
              2.0 * static_cast<double>(attention.compared(position)) * index_values;
    }
    return flop;
  }

  std::unique_ptr<ResidualConnection> normed(const WeightLoader& loader, const std::string& norm) {
    return std::make_unique<NormedConnection>(loader, backend_, norm, config_.hidden_size, eps());
  }

  std::unique_ptr<ResidualConnection> connection(const WeightLoader& loader, const std::string& prefix,
                                                 GatedConnection::Kind kind) {
    return std::make_unique<GatedConnection>(loader, backend_, prefix, kind, streams(), *gated_scratch_);
  }

  HybridLayer load_layer(const WeightLoader& loader, std::size_t index) {
    const HybridConfig::Layer& kind = details_.layers[index];
    const std::string prefix = fmt::format("model.layers.{}.", index);
    const auto connect = [&](const char* gated, const char* norm) {
      return details_.streams > 0 ? connection(loader, prefix + gated, GatedConnection::Kind::block)
                                  : normed(loader, prefix + norm);
    };
    HybridLayer layer;
    if (kind.ngrams) {
      layer.ngrams =
          std::make_unique<NgramBlock>(loader, backend_, prefix + "ple.", *kind.ngrams, config_, details_, max_rows_);
    }
    layer.attention_connection = connect("attn_hyper_connection.", "input_layernorm.weight");
    if (kind.linear) {
      layer.linear =
          std::make_unique<DeltaBlock>(loader, backend_, prefix + "linear_attn.", details_, eps(), max_rows_);
    } else {
      layer.full = std::make_unique<GatedAttentionBlock>(loader, backend_, prefix + "self_attn.", full_layers_++,
                                                         config_, details_, max_rows_);
    }
    layer.mlp_connection = connect("mlp_hyper_connection.", "post_attention_layernorm.weight");
    layer.mlp = std::make_unique<HybridFeedForward>(loader, backend_, prefix + "mlp.", details_, kind.experts,
                                                    config_.hidden_size, max_rows_);
    return layer;
  }

  void load_head(const WeightLoader& loader) {
    head_is_shared_ = config_.tie_word_embeddings && loader.planned("lm_head").route == Route::dense;
    head_ = head_is_shared_ ? backend_.share_linear(embedding_.tensor) : loader.linear("lm_head");
  }

  void run_layer(const HybridLayer& layer, const Batch& batch, KvCache& kv, const HybridCache::LayerCache& cache,
                 const Tensor& hidden) {
    const Tensor read = read_.tensor.row_range(0, batch.rows);
    const Tensor written = written_.tensor.row_range(0, batch.rows);
    if (layer.ngrams) layer.ngrams->forward(hidden, batch, cache.ngrams);
    layer.attention_connection->read(hidden, read);
    if (layer.linear) {
      layer.linear->forward(read, batch, cache.delta, written);
    } else {
      const Tensor angles = angles_.tensor.row_range(0, batch.rows);
      layer.full->forward(read, angles, frequencies_.tensor, batch, kv, cache.index, written);
    }
    layer.attention_connection->write(hidden, written);
    layer.mlp_connection->read(hidden, read);
    layer.mlp->forward(read, written);
    layer.mlp_connection->write(hidden, written);
  }

  const ModelConfig config_;
  const HybridConfig details_;
  Backend& backend_;
  std::int64_t max_rows_;
  std::int64_t width_;  // of the residual
  OwnedTensor embedding_;
  OwnedTensor frequencies_;
  float rope_scale_ = 1.0F;
  std::unique_ptr<GatedScratch> gated_scratch_;
  std::vector<HybridLayer> layers_;
  std::int64_t full_layers_ = 0;
  std::unique_ptr<ResidualConnection> last_;  // between the residual and the head
  std::unique_ptr<Linear> head_;
  bool head_is_shared_ = false;  // with the embedding
  OwnedTensor hidden_;
  OwnedTensor chosen_;   // rows that get logits
  OwnedTensor read_;     // what a block reads
  OwnedTensor written_;  // and what it writes
  OwnedTensor angles_;
  FiniteProbe probe_;
};

}  // namespace

std::unique_ptr<Model> load_hybrid(const ModelSource& source) {
  HybridConfig details = read_hybrid(*source.config);
  std::vector<Operator> operators = {Operator::causal_conv, Operator::delta_rule, Operator::gates, Operator::add};
  if (details.streams > 0) operators.push_back(Operator::gated_streams);
  if (details.ngrams) operators.push_back(Operator::ngrams);
  if (details.indexer) {
    operators.insert(operators.end(), {Operator::mean_pool, Operator::select_entries, Operator::block_attention});
  }
  require_operators(*source.backend, operators, source.config->file.string());
  return std::make_unique<HybridDecoder>(source, std::move(details));
}

}  // namespace qpn8
