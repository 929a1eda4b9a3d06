#include "model/decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.hpp"
#include "model/attention_block.hpp"
#include "model/finite_probe.hpp"
#include "model/mlp_block.hpp"
#include "model/moe_block.hpp"
#include "model/rope.hpp"
#include "model/weights.hpp"

namespace qpn8 {
namespace {

class DecoderCache : public Cache {
 public:
  /// `windows`: of each layer, 0 for full attention.
  DecoderCache(std::unique_ptr<KvCache> kv, std::vector<std::int64_t> windows)
      : kv_(std::move(kv)), windows_(std::move(windows)) {}

  /// Positions beyond the next token's are never read, so nothing has to be cleared.
  void reset(int /*slot*/) override {}
  std::int64_t bytes() const override { return kv_->bytes(); }
  std::int64_t bytes_read(std::int64_t context) const override {
    const KvShape& shape = kv_->shape();
    std::int64_t positions = 0;
    for (const std::int64_t window : windows_) positions += window > 0 ? std::min(window, context) : context;
    return positions * 2 * shape.kv_heads * shape.head_dim * static_cast<std::int64_t>(size_of(shape.dtype));
  }
  KvCache& kv() { return *kv_; }

 private:
  std::unique_ptr<KvCache> kv_;
  std::vector<std::int64_t> windows_;
};

/// One decoder layer: attention, then a dense or expert MLP, each behind its norm.
struct DecoderLayer {
  OwnedTensor attention_norm;
  std::unique_ptr<AttentionBlock> attention;
  OwnedTensor mlp_norm;
  std::unique_ptr<FeedForward> mlp;
};

class Decoder : public Model {
 public:
  Decoder(const ModelSource& source, const DecoderSpec& spec)
      : config_(*source.config), backend_(*source.backend), max_rows_(source.max_rows), probe_(backend_, max_rows_) {
    const WeightLoader loader(source);
    const RopeFrequencies rope = rope_frequencies(config_);
    frequencies_ = loader.row(rope.frequencies);
    rope_scale_ = rope.scale;
    embedding_ = loader.table("model.embed_tokens.weight", config_.vocab_size, config_.hidden_size);
    // The largest matrix while little else is in memory: what it is packed from stays there until it is.
    load_head(loader);
    load_layers(loader, spec);
    final_norm_ = loader.row("model.norm.weight", config_.hidden_size);
    allocate_scratch();
  }

  std::int64_t vocab_size() const override { return config_.vocab_size; }

  std::unique_ptr<Cache> make_cache(int slots, std::int64_t capacity, DType kv_dtype) override {
    return std::make_unique<DecoderCache>(backend_.make_kv_cache({.layers = config_.layers,
                                                                  .slots = slots,
                                                                  .capacity = capacity,
                                                                  .kv_heads = config_.kv_heads,
                                                                  .head_dim = config_.head_dim,
                                                                  .dtype = kv_dtype}),
                                          windows_);
  }

  void forward(const Batch& batch, Cache& cache, const Tensor& logit_rows, const Tensor& logits) override {
    check(batch.rows >= 1 && batch.rows <= max_rows_ && logit_rows.rows <= max_rows_, "a batch fits the scratch");
    KvCache& kv = static_cast<DecoderCache&>(cache).kv();
    const Tensor angles = angles_.tensor.row_range(0, batch.rows);
    const auto eps = static_cast<float>(config_.rms_norm_eps);
    ResidualStream stream = {.hidden = hidden_.tensor.row_range(0, batch.rows),
                             .delta = delta_.tensor.row_range(0, batch.rows),
                             .normed = normed_.tensor.row_range(0, batch.rows)};

    backend_.embed(embedding_.tensor, batch.ids, stream.hidden);
    backend_.rope_angles(batch.positions, frequencies_.tensor, rope_scale_, angles);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const DecoderLayer& layer = layers_[i];
      layer.attention->forward(stream, {layer.attention_norm.tensor, eps}, angles, batch, kv);
      layer.mlp->forward(stream, {layer.mlp_norm.tensor, eps});
      if (check_finite_) {
        backend_.normalise(stream, {layer.mlp_norm.tensor, eps});  // what is pending becomes part of the stream
        probe_.require(stream.hidden, fmt::format("model.layers.{}", i));
      }
    }
    backend_.normalise(stream, {final_norm_.tensor, eps});
    const Tensor chosen = chosen_.tensor.row_range(0, logit_rows.rows);
    backend_.gather_rows(stream.normed, logit_rows, chosen);
    backend_.linear(*head_, chosen, logits);
    if (check_finite_) probe_.require(logits, "lm_head");
  }

  std::int64_t weight_bytes_per_token() const override {
    std::int64_t bytes = head_->bytes();
    for (const DecoderLayer& layer : layers_) bytes += layer.attention->bytes() + layer.mlp->bytes_per_token();
    return bytes;
  }

  std::int64_t weight_bytes() const override {
    const Tensor& embedding = embedding_.tensor;
    std::int64_t bytes = embedding.rows * embedding.cols * static_cast<std::int64_t>(size_of(embedding.dtype));
    if (!head_is_shared_) bytes += head_->bytes();
    for (const DecoderLayer& layer : layers_) bytes += layer.attention->bytes() + layer.mlp->bytes();
    return bytes;
  }

  double prefill_flop(std::int64_t tokens) const override {
    std::int64_t products_per_token = 0;
    double scores = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      products_per_token += layers_[i].attention->products_per_token() + layers_[i].mlp->products_per_token();
      scores += scores_of(tokens, windows_[i]);
    }
    const double weights =
        static_cast<double>(products_per_token) * static_cast<double>(tokens) + static_cast<double>(products(*head_));
    return 2.0 * weights + 4.0 * scores * static_cast<double>(config_.heads * config_.head_dim);
  }

 private:
  /// Pairs of a query and a key that a causal mask of this window lets through.
  static double scores_of(std::int64_t tokens, std::int64_t window) {
    const auto seen = static_cast<double>(window > 0 ? std::min(window, tokens) : tokens);
    return seen * (seen + 1) / 2 + (static_cast<double>(tokens) - seen) * seen;
  }

  void load_layers(const WeightLoader& loader, const DecoderSpec& spec) {
    const AttentionOptions attention = {.heads = config_.heads,
                                        .kv_heads = config_.kv_heads,
                                        .head_dim = config_.head_dim,
                                        .qk_norm = spec.qk_norm,
                                        .eps = static_cast<float>(config_.rms_norm_eps)};
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const std::string prefix = fmt::format("model.layers.{}.", i);
      const DecoderSpec::Layer& layer_spec = spec.layers[static_cast<std::size_t>(i)];
      windows_.push_back(layer_spec.window);
      DecoderLayer layer;
      layer.attention_norm = loader.row(prefix + "input_layernorm.weight", config_.hidden_size);
      layer.attention = std::make_unique<AttentionBlock>(loader, backend_, prefix + "self_attn.", i, attention,
                                                         layer_spec.window, max_rows_);
      layer.mlp_norm = loader.row(prefix + "post_attention_layernorm.weight", config_.hidden_size);
      if (layer_spec.moe) {
        layer.mlp = std::make_unique<MoeBlock>(loader, backend_, prefix + "mlp.", spec.moe, max_rows_);
      } else {
        layer.mlp = std::make_unique<MlpBlock>(loader, backend_, prefix + "mlp.", max_rows_);
      }
      layers_.push_back(std::move(layer));
    }
  }

  void load_head(const WeightLoader& loader) {
    head_is_shared_ = config_.tie_word_embeddings && loader.planned("lm_head").route == Route::dense;
    head_ = head_is_shared_ ? backend_.share_linear(embedding_.tensor) : loader.linear("lm_head");
  }

  void allocate_scratch() {
    const DType type = backend_.activation_type();
    hidden_ = backend_.allocate(type, max_rows_, config_.hidden_size);
    normed_ = backend_.allocate(type, max_rows_, config_.hidden_size);
    delta_ = backend_.allocate(type, max_rows_, config_.hidden_size);
    chosen_ = backend_.allocate(type, max_rows_, config_.hidden_size);
    angles_ = backend_.allocate(DType::f32, max_rows_, 2 * frequencies_.tensor.cols);
  }

  const ModelConfig config_;
  Backend& backend_;
  std::int64_t max_rows_;
  OwnedTensor embedding_;
  OwnedTensor frequencies_;
  float rope_scale_ = 1.0F;
  std::vector<DecoderLayer> layers_;
  OwnedTensor final_norm_;
  std::vector<std::int64_t> windows_;  // of each layer, 0 for full attention
  std::unique_ptr<Linear> head_;
  bool head_is_shared_ = false;  // with the embedding
  OwnedTensor hidden_;           // the residual stream
  OwnedTensor normed_;           // input of the next block
  OwnedTensor delta_;            // output of the last block
  OwnedTensor chosen_;           // rows that get logits
  OwnedTensor angles_;
  FiniteProbe probe_;
};

}  // namespace

std::unique_ptr<Model> load_decoder(const ModelSource& source, const DecoderSpec& spec) {
  return std::make_unique<Decoder>(source, spec);
}

}  // namespace qpn8
