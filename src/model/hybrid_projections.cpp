#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/hybrid.hpp"
#include "model/rope.hpp"
#include "model/topology_checks.hpp"

namespace qpn8 {
namespace {

constexpr std::int64_t kRowMultiple = 16;

/// Lists the projections layer by layer; sizes are those of one rank.
class HybridProjectionLister {
 public:
  HybridProjectionLister(const ModelConfig& config, const Topology& topology)
      : config_(config), details_(read_hybrid(config)), hidden_(config.hidden_size), tp_(topology.tp) {
    require_gated_silu(config);
    rope_frequencies(config);  // what `run` refuses `plan` must refuse too
    require_stages(config, topology.pp);
    require_split(dimensions(), tp_);
  }

  std::vector<Projection> list() {
    for (std::size_t i = 0; i < details_.layers.size(); ++i) {
      const HybridConfig::Layer& layer = details_.layers[i];
      layer_ = fmt::format("model.layers.{}.", i);
      if (layer.ngrams) ngrams();
      if (details_.streams > 0) streams(layer_ + "attn_hyper_connection.");
      if (layer.linear) {
        linear_attention();
      } else {
        full_attention();
      }
      if (details_.streams > 0) streams(layer_ + "mlp_hyper_connection.");
      if (layer.experts) {
        experts();
      } else {
        mlp(layer_ + "mlp.", "mlp.", config_.intermediate_size);
      }
    }
    if (details_.streams > 0) mixer();
    begin("", "lm_head", "lm_head", tp_, hidden_, config_.vocab_size / tp_);
    part(config_.tie_word_embeddings ? "model.embed_tokens" : "lm_head", config_.vocab_size, hidden_, Split::rows);
    return std::move(projections_);
  }

 private:
  std::vector<SplitDimension> dimensions() const {
    std::vector<SplitDimension> split = {{"attention heads", config_.heads},
                                         {"key/value heads", config_.kv_heads, /*replicates=*/true},
                                         {"linear attention key heads", details_.key_heads},
                                         {"linear attention value heads", details_.value_heads}};
    if (details_.experts > 0) {
      split.push_back({"expert channels", details_.expert_size});
      split.push_back({"shared expert channels", details_.shared_size});
    }
    const auto is_dense = [](const HybridConfig::Layer& layer) { return !layer.experts; };
    if (std::any_of(details_.layers.begin(), details_.layers.end(), is_dense)) {
      require_mlp_width(config_);
      split.push_back({"intermediate channels", config_.intermediate_size});
    }
    split.push_back({"vocabulary entries", config_.vocab_size});
    return split;
  }

  Projection& last() { return projections_.back(); }

  /// A projection whose tensors follow by part().
  void begin(const std::string& module, const std::string& name, const std::string& role, int layer_tp, std::int64_t k,
             std::int64_t n) {
    module_ = module;
    Projection projection;
    projection.desc.name = module + name;
    projection.desc.tensor.role = role;
    projection.desc.tensor.layer_tp = layer_tp;
    projection.desc.tensor.k = k;
    projection.desc.tensor.n = n;
    projections_.push_back(std::move(projection));
  }

  ProjectionPart& part(const std::string& tensor, std::int64_t rows, std::int64_t cols, Split split = Split::none) {
    last().parts.push_back(
        {.tensor = module_ + tensor + ".weight", .bias = "", .rows = rows, .cols = cols, .split = split});
    return last().parts.back();
  }

  /// Rows of a tensor of `all` rows: `runs` runs of `run` rows, `pitch` apart, from `first` on.
  void runs(const std::string& tensor, std::int64_t all, std::int64_t count, std::int64_t run, std::int64_t pitch,
            std::int64_t first) {
    ProjectionPart& rows = part(tensor, count * run, hidden_, Split::rows);
    rows.first_row = first;
    rows.run_rows = run;
    rows.run_pitch = pitch;
    rows.shape = {all, hidden_};
  }

  void linear_attention() {
    const std::string module = layer_ + "linear_attn.";
    const std::int64_t keys = details_.key_heads * details_.key_dim;
    const std::int64_t values = details_.value_heads * details_.value_dim;
    begin(module, "in_proj_qkvz", "linear_attn.in_proj_qkvz", tp_, hidden_, (2 * keys + 2 * values) / tp_);
    if (details_.grouped) {
      grouped_qkvz();
    } else {
      const std::int64_t all = 2 * keys + values;
      runs("in_proj_qkv", all, 1, keys, 0, 0);
      runs("in_proj_qkv", all, 1, keys, 0, keys);
      runs("in_proj_qkv", all, 1, values, 0, 2 * keys);
      part("in_proj_z", values, hidden_, Split::rows);
    }
    begin(module, "in_proj_ba", "linear_attn.in_proj_ba", tp_, hidden_, 2 * details_.value_heads / tp_);
    if (details_.grouped) {
      const std::int64_t sharing = details_.value_heads / details_.key_heads;
      const std::int64_t all = 2 * details_.value_heads;
      runs("in_proj_ba", all, details_.key_heads, sharing, 2 * sharing, 0);
      runs("in_proj_ba", all, details_.key_heads, sharing, 2 * sharing, sharing);
    } else {
      part("in_proj_b", details_.value_heads, hidden_, Split::rows);
      part("in_proj_a", details_.value_heads, hidden_, Split::rows);
    }
    begin(module, "out_proj", "linear_attn.out_proj", tp_, values / tp_, hidden_);
    part("out_proj", hidden_, values, Split::cols);
  }

  /// Stored a key head at a time: its q, its k, the v and then the z of its value heads.
  void grouped_qkvz() {
    const std::int64_t heads = details_.key_heads;
    const std::int64_t key = details_.key_dim;
    const std::int64_t value = details_.value_heads / heads * details_.value_dim;
    const std::int64_t pitch = 2 * key + 2 * value;
    runs("in_proj_qkvz", heads * pitch, heads, key, pitch, 0);
    runs("in_proj_qkvz", heads * pitch, heads, key, pitch, key);
    runs("in_proj_qkvz", heads * pitch, heads, value, pitch, 2 * key);
    runs("in_proj_qkvz", heads * pitch, heads, value, pitch, 2 * key + value);
  }

  /// Queries and output gates are stored head by head; they are loaded as q | gate | k | v.
  void full_attention() {
    const std::string module = layer_ + "self_attn.";
    const std::int64_t dim = config_.head_dim;
    const std::int64_t q = config_.heads * dim;
    const std::int64_t kv_of_rank = std::max<std::int64_t>(config_.kv_heads / tp_, 1) * dim;
    begin(module, "qkv_proj", "self_attn.qkv_proj", tp_, hidden_, 2 * q / tp_ + 2 * kv_of_rank);
    runs("q_proj", 2 * q, config_.heads, dim, 2 * dim, 0);
    runs("q_proj", 2 * q, config_.heads, dim, 2 * dim, dim);
    for (const char* name : {"k_proj", "v_proj"}) {
      part(name, config_.kv_heads * dim, hidden_, Split::rows).copies =
          std::max<std::int64_t>(tp_ / config_.kv_heads, 1);
    }
    begin(module, "o_proj", "self_attn.o_proj", tp_, q / tp_, hidden_);
    part("o_proj", hidden_, q, Split::cols);
    if (!details_.indexer) return;
    const std::int64_t rows = (details_.indexer->heads + 1) * details_.indexer->width;
    begin(module, "indexer.index_qk_proj", "indexer.index_qk_proj", 1, hidden_, rows);
    part("indexer.index_qk_proj", rows, hidden_);
  }

  /// Between the streams and a block: what is read of them and what a stream takes back share one input.
  void streams(const std::string& module) {
    const std::int64_t wide = details_.streams * hidden_;
    begin(module, "down_inject", "hyper_connection.down_inject", 1, wide, down_inject_rows(details_));
    part("input_mix_weight_down", details_.low_rank, wide);
    part("block_inject_weight", details_.streams, wide);
    last().zero_rows = down_inject_rows(details_) - details_.low_rank - details_.streams;
    up(module);
  }

  void up(const std::string& module) {
    begin(module, "up", "hyper_connection.up", 1, details_.low_rank, details_.streams * hidden_);
    part("input_mix_weight_up", details_.streams * hidden_, details_.low_rank);
  }

  /// What the head reads of the streams; nothing is injected.
  void mixer() {
    const std::string module = "model.hyper_connection_mixer.";
    begin(module, "down", "hyper_connection.down", 1, details_.streams * hidden_, details_.low_rank);
    part("input_mix_weight_down", details_.low_rank, details_.streams * hidden_);
    up(module);
  }

  void ngrams() {
    const std::string module = layer_ + "ple.";
    const std::int64_t wide = details_.streams * hidden_;
    begin(module, "key_proj", "ple.key_proj", 1, details_.ngrams->width, wide);
    part("key_proj", wide, details_.ngrams->width);
    begin(module, "value_proj", "ple.value_proj", 1, details_.ngrams->width, hidden_);
    part("value_proj", hidden_, details_.ngrams->width);
  }

  void mlp(const std::string& module, const std::string& role, std::int64_t inner) {
    begin(module, "gate_up_proj", role + "gate_up_proj", tp_, hidden_, 2 * inner / tp_);
    part("gate_proj", inner, hidden_, Split::rows);
    part("up_proj", inner, hidden_, Split::rows);
    begin(module, "down_proj", role + "down_proj", tp_, inner / tp_, hidden_);
    part("down_proj", hidden_, inner, Split::cols);
  }

  void experts() {
    const std::string module = layer_ + "mlp.";
    begin(module, "gate", "mlp.router", 1, hidden_, details_.experts);
    part("gate", details_.experts, hidden_);
    for (std::int64_t expert = 0; expert < details_.experts; ++expert) {
      mlp(fmt::format("{}experts.{}.", module, expert), "mlp.experts.", details_.expert_size);
    }
    mlp(module + "shared_expert.", "mlp.shared_expert.", details_.shared_size);
    begin(module, "shared_expert_gate", "mlp.shared_expert_gate", 1, hidden_, 1);
    part("shared_expert_gate", 1, hidden_);
  }

  const ModelConfig& config_;
  const HybridConfig details_;
  std::int64_t hidden_;
  int tp_;
  std::string layer_;
  std::string module_;
  std::vector<Projection> projections_;
};

}  // namespace

std::int64_t down_inject_rows(const HybridConfig& details) {
  return (details.low_rank + details.streams + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
}

std::vector<Projection> hybrid_projections(const ModelConfig& config, const Topology& topology) {
  return HybridProjectionLister(config, topology).list();
}

}  // namespace qpn8
