#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/check.hpp"
#include "model/deepseek_v4.hpp"
#include "model/deepseek_v4_rope.hpp"
#include "model/finite_probe.hpp"
#include "model/latent_attention_block.hpp"
#include "model/residual_streams.hpp"
#include "model/scored_moe_block.hpp"

namespace qpn8 {
namespace {

constexpr Operator kOperators[] = {
    Operator::grouped_linear,   Operator::limited_swiglu, Operator::rope_tails,
    Operator::store_rows,       Operator::pool_rows,      Operator::select_entries,
    Operator::latent_attention, Operator::score_experts,  Operator::add,
    Operator::residual_streams,
};

std::int64_t bytes_of(const Tensor& tensor) {
  return tensor.rows * tensor.cols * static_cast<std::int64_t>(size_of(tensor.dtype));
}

/// Bytes of a row.
std::int64_t row_bytes(const Tensor& tensor) { return tensor.cols * static_cast<std::int64_t>(size_of(tensor.dtype)); }

/// A layer: both blocks with their norms and their connections to the streams.
struct Layer {
  std::unique_ptr<StreamConnection> attention_streams;
  OwnedTensor attention_norm;
  std::unique_ptr<LatentAttentionBlock> attention;
  std::unique_ptr<StreamConnection> experts_streams;
  OwnedTensor experts_norm;
  std::unique_ptr<ScoredMoeBlock> experts;
};

class LatentCaches : public Cache {
 public:
  explicit LatentCaches(std::vector<LatentCache> layers, const std::vector<Layer>& model)
      : layers_(std::move(layers)), model_(model) {}

  /// What a position reads was written at positions before it, so nothing has to be cleared.
  void reset(int /*slot*/) override {}

  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const LatentCache& layer : layers_) {
      sum += bytes_of(layer.window.tensor);
      for (const EntryCache* entries : {&layer.seen, &layer.keys}) {
        sum += bytes_of(entries->pending.tensor) + bytes_of(entries->entries.tensor);
      }
    }
    return sum;
  }

  std::int64_t bytes_read(std::int64_t context) const override {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const LatentAttentionBlock& attention = *model_[i].attention;
      sum += attention.seen(context - 1) * row_bytes(layers_[i].window.tensor) +
             attention.compared(context - 1) * row_bytes(layers_[i].keys.entries.tensor);
    }
    return sum;
  }

  LatentCache& layer(std::size_t index) { return layers_[index]; }

 private:
  std::vector<LatentCache> layers_;
  const std::vector<Layer>& model_;
};

/// One of the two rotations of a pass.
struct Rotation {
  OwnedTensor frequencies;
  OwnedTensor negated;
  float scale = 1.0F;
  OwnedTensor forward;
  OwnedTensor backward;

  LatentAngles angles(std::int64_t rows) const {
    return {forward.tensor.row_range(0, rows), backward.tensor.row_range(0, rows), frequencies.tensor};
  }
};

class DeepseekV4 : public Model {
 public:
  DeepseekV4(const ModelSource& source, const DeepseekV4Config& details)
      : config_(*source.config),
        details_(details),
        backend_(*source.backend),
        max_rows_(source.max_rows),
        streams_{.streams = details.streams,
                 .hidden_size = config_.hidden_size,
                 .sinkhorn_steps = details.sinkhorn_steps,
                 .eps = static_cast<float>(details.stream_eps),
                 .norm_eps = eps()},
        stream_scratch_(backend_, streams_, max_rows_),
        probe_(backend_, max_rows_) {
    const WeightLoader loader(source);
    const DeepseekV4Rope rope = deepseek_v4_rope(config_, details_);
    main_ = make_rotation(loader, rope.main);
    entry_ = make_rotation(loader, rope.entry);
    embedding_ = loader.table("embed.weight", config_.vocab_size, config_.hidden_size);
    for (std::size_t i = 0; i < details_.layers.size(); ++i) layers_.push_back(load_layer(loader, source, i));
    head_streams_ = std::make_unique<StreamConnection>(loader, backend_, "hc_head_", StreamConnection::Kind::head,
                                                       streams_, stream_scratch_);
    final_norm_ = loader.row("norm.weight", config_.hidden_size);
    head_ = loader.linear("lm_head");
    const DType type = backend_.activation_type();
    hidden_ = backend_.allocate(type, max_rows_, details_.streams * config_.hidden_size);
    chosen_ = backend_.allocate(type, max_rows_, details_.streams * config_.hidden_size);
    read_ = backend_.allocate(type, max_rows_, config_.hidden_size);
    written_ = backend_.allocate(type, max_rows_, config_.hidden_size);
  }

  std::int64_t vocab_size() const override { return config_.vocab_size; }

  std::unique_ptr<Cache> make_cache(int slots, std::int64_t capacity, DType kv_dtype) override {
    std::vector<LatentCache> caches;
    for (const Layer& layer : layers_) caches.push_back(layer.attention->make_cache(slots, capacity, kv_dtype));
    return std::make_unique<LatentCaches>(std::move(caches), layers_);
  }

  void forward(const Batch& batch, Cache& cache, const Tensor& logit_rows, const Tensor& logits) override {
    check(batch.rows >= 1 && batch.rows <= max_rows_ && logit_rows.rows <= max_rows_, "a batch fits the scratch");
    auto& caches = static_cast<LatentCaches&>(cache);
    const Tensor hidden = hidden_.tensor.row_range(0, batch.rows);
    embed(batch, hidden);
    for (const Rotation* rotation : {&main_, &entry_}) turn(*rotation, batch);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      run_layer(layers_[i], batch, caches.layer(i), hidden);
      if (check_finite_) probe_.require(hidden, fmt::format("model.layers.{}", i));
    }
    const Tensor chosen = chosen_.tensor.row_range(0, logit_rows.rows);
    const Tensor last = read_.tensor.row_range(0, logit_rows.rows);
    backend_.gather_rows(hidden, logit_rows, chosen);
    head_streams_->read(chosen, last);
    backend_.rms_norm(last, final_norm_.tensor, eps(), last);
    backend_.linear(*head_, last, logits);
    if (check_finite_) probe_.require(logits, "lm_head");
  }

  std::int64_t weight_bytes_per_token() const override {
    std::int64_t bytes = head_->bytes() + head_streams_->bytes();
    for (const Layer& layer : layers_) bytes += shared_bytes(layer) + layer.experts->bytes_per_token();
    return bytes;
  }

  std::int64_t weight_bytes() const override {
    std::int64_t bytes = bytes_of(embedding_.tensor) + head_->bytes() + head_streams_->bytes();
    for (const Layer& layer : layers_) bytes += shared_bytes(layer) + layer.experts->bytes();
    return bytes;
  }

  double prefill_flop(std::int64_t tokens) const override {
    std::int64_t weights = 0;
    double scores = 0;
    for (const Layer& layer : layers_) {
      weights += layer.attention_streams->products_per_token() + layer.attention->products_per_token() +
                 layer.experts_streams->products_per_token() + layer.experts->products_per_token();
      scores += scores_of(*layer.attention, tokens);
    }
    const auto last = static_cast<double>(products(*head_) + head_streams_->products_per_token());
    return 2.0 * (static_cast<double>(weights) * static_cast<double>(tokens) + last) + scores;
  }

 private:
  float eps() const { return static_cast<float>(config_.rms_norm_eps); }

  static std::int64_t shared_bytes(const Layer& layer) {
    return layer.attention_streams->bytes() + layer.attention->bytes() + layer.experts_streams->bytes();
  }

  /// Of attention and of the indexer: a product and a sum a value that is read for a score, the same for a weighted
  /// sum.
  double scores_of(const LatentAttentionBlock& attention, std::int64_t tokens) const {
    const auto head_values = static_cast<double>(config_.heads * config_.head_dim);
    const auto index_values = static_cast<double>(details_.index_heads * details_.index_dim);
    double flop = 0;
    for (std::int64_t position = 0; position < tokens; ++position) {
      flop += 4.0 * static_cast<double>(attention.seen(position)) * head_values +
              2.0 * static_cast<double>(attention.compared(position)) * index_values;
    }
    return flop;
  }

  Rotation make_rotation(const WeightLoader& loader, const RopeFrequencies& rope) {
    Rotation rotation;
    rotation.frequencies = loader.row(rope.frequencies);
    std::vector<float> negated = rope.frequencies;
    for (float& frequency : negated) frequency = -frequency;
    rotation.negated = loader.row(negated);
    rotation.scale = rope.scale;
    rotation.forward = backend_.allocate(DType::f32, max_rows_, details_.rope_dims);
    rotation.backward = backend_.allocate(DType::f32, max_rows_, details_.rope_dims);
    return rotation;
  }

  Layer load_layer(const WeightLoader& loader, const ModelSource& source, std::size_t index) {
    const std::string prefix = fmt::format("layers.{}.", index);
    const auto connect = [&](const char* name) {
      return std::make_unique<StreamConnection>(loader, backend_, prefix + name, StreamConnection::Kind::block,
                                                streams_, stream_scratch_);
    };
    const LatentAttentionBlock::Options options = {.heads = config_.heads / source.tp,
                                                   .head_dim = config_.head_dim,
                                                   .hidden_size = config_.hidden_size,
                                                   .eps = eps()};
    Layer layer;
    layer.attention_streams = connect("hc_attn_");
    layer.attention_norm = loader.row(prefix + "attn_norm.weight", config_.hidden_size);
    layer.attention = std::make_unique<LatentAttentionBlock>(loader, backend_, index, details_, options, max_rows_);
    layer.experts_streams = connect("hc_ffn_");
    layer.experts_norm = loader.row(prefix + "ffn_norm.weight", config_.hidden_size);
    layer.experts = std::make_unique<ScoredMoeBlock>(loader, backend_, index, config_, details_, max_rows_);
    return layer;
  }

  /// All streams begin as the token's embedding.
  void embed(const Batch& batch, const Tensor& hidden) {
    for (std::int64_t stream = 0; stream < details_.streams; ++stream) {
      backend_.embed(embedding_.tensor, batch.ids, hidden.col_range(stream * config_.hidden_size, config_.hidden_size));
    }
  }

  void turn(const Rotation& rotation, const Batch& batch) {
    const LatentAngles angles = rotation.angles(batch.rows);
    backend_.rope_angles(batch.positions, rotation.frequencies.tensor, rotation.scale, angles.forward);
    backend_.rope_angles(batch.positions, rotation.negated.tensor, rotation.scale, angles.backward);
  }

  void run_layer(const Layer& layer, const Batch& batch, LatentCache& cache, const Tensor& hidden) {
    const Tensor read = read_.tensor.row_range(0, batch.rows);
    const Tensor written = written_.tensor.row_range(0, batch.rows);
    const Rotation& rotation = layer.attention->kind().attention == CompressedAttention::none ? main_ : entry_;
    layer.attention_streams->read(hidden, read);
    backend_.rms_norm(read, layer.attention_norm.tensor, eps(), read);
    layer.attention->forward(read, rotation.angles(batch.rows), batch, cache, written);
    layer.attention_streams->write(hidden, written);
    layer.experts_streams->read(hidden, read);
    backend_.rms_norm(read, layer.experts_norm.tensor, eps(), read);
    layer.experts->forward(read, batch, written);
    layer.experts_streams->write(hidden, written);
  }

  const ModelConfig config_;
  const DeepseekV4Config details_;
  Backend& backend_;
  std::int64_t max_rows_;
  StreamOptions streams_;
  StreamScratch stream_scratch_;
  Rotation main_;   // of layers that see their window alone
  Rotation entry_;  // of those with entries
  OwnedTensor embedding_;
  std::vector<Layer> layers_;
  std::unique_ptr<StreamConnection> head_streams_;
  OwnedTensor final_norm_;
  std::unique_ptr<Linear> head_;
  OwnedTensor hidden_;   // the residual streams, side by side
  OwnedTensor chosen_;   // of the rows that get logits
  OwnedTensor read_;     // what a block reads
  OwnedTensor written_;  // and what it writes
  FiniteProbe probe_;
};

}  // namespace

std::unique_ptr<Model> load_deepseek_v4(const ModelSource& source) {
  require_operators(*source.backend, kOperators, source.config->file.string());
  return std::make_unique<DeepseekV4>(source, read_deepseek_v4(*source.config));
}

}  // namespace qpn8
