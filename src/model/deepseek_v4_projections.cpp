#include <fmt/format.h>

#include <string>

#include "model/deepseek_v4.hpp"
#include "model/deepseek_v4_rope.hpp"
#include "model/topology_checks.hpp"

namespace qpn8 {
namespace {

/// Lists the projections layer by layer; sizes are those of one rank.
class DeepseekV4ProjectionLister {
 public:
  DeepseekV4ProjectionLister(const ModelConfig& config, const Topology& topology)
      : config_(config), details_(read_deepseek_v4(config)), hidden_(config.hidden_size), tp_(topology.tp) {
    require_gated_silu(config);
    deepseek_v4_rope(config, details_);  // what `run` refuses `plan` must refuse too
    require_stages(config, topology.pp);
    const SplitDimension dimensions[] = {{"output groups", details_.o_groups},
                                         {"expert channels", details_.expert_size},
                                         {"vocabulary entries", config.vocab_size}};
    require_split(dimensions, tp_);
  }

  std::vector<Projection> list() {
    for (std::size_t layer = 0; layer < details_.layers.size(); ++layer) {
      layer_ = fmt::format("layers.{}.", layer);
      attention(details_.layers[layer]);
      experts();
    }
    begin("", "lm_head", "lm_head", tp_, hidden_, config_.vocab_size / tp_);
    last().announced = Announced::unquantised;
    part(config_.tie_word_embeddings ? "embed" : "head", config_.vocab_size, hidden_, Split::rows);
    return std::move(projections_);
  }

 private:
  Projection& last() { return projections_.back(); }

  /// A projection whose tensors follow by part().
  void begin(const std::string& module, const std::string& name, const std::string& role, int layer_tp, std::int64_t k,
             std::int64_t n) {
    module_ = module;
    Projection projection;
    projection.desc.name = (module.empty() ? "" : "model.") + module + name;
    projection.desc.tensor.role = role;
    projection.desc.tensor.layer_tp = layer_tp;
    projection.desc.tensor.k = k;
    projection.desc.tensor.n = n;
    projections_.push_back(std::move(projection));
  }

  void part(const std::string& tensor, std::int64_t rows, std::int64_t cols, Split split = Split::none) {
    last().parts.push_back(
        {.tensor = module_ + tensor + ".weight", .bias = "", .rows = rows, .cols = cols, .split = split});
  }

  void attention(const DeepseekV4Config::Layer& kind) {
    const std::string module = layer_ + "attn.";
    const std::int64_t heads = config_.heads * config_.head_dim;
    const std::int64_t group = heads / details_.o_groups;
    const std::int64_t low = details_.o_groups * details_.o_rank;
    // One vector a token is key and value of all heads, so what makes it is held by every rank.
    begin(module, "fused_wqa_wkv", "fused_wqa_wkv", 1, hidden_, details_.q_rank + config_.head_dim);
    part("wq_a", details_.q_rank, hidden_);
    part("wkv", config_.head_dim, hidden_);
    begin(module, "wq_b", "wq_b", tp_, details_.q_rank, heads / tp_);
    part("wq_b", heads, details_.q_rank, Split::rows);
    begin(module, "wo_a", "wo_a", tp_, group, details_.o_rank);
    last().desc.tensor.groups = details_.o_groups / tp_;
    part("wo_a", low, group, Split::rows);
    begin(module, "wo_b", "wo_b", tp_, low / tp_, hidden_);
    part("wo_b", hidden_, low, Split::cols);
    if (kind.attention == CompressedAttention::none) return;
    compressor(module, kind, config_.head_dim);
    if (kind.attention == CompressedAttention::sparse) indexer(module, kind);
  }

  /// Values and gates of what is pooled into entries of `width`.
  void compressor(const std::string& module, const DeepseekV4Config::Layer& kind, std::int64_t width) {
    const std::int64_t channels = kind.attention == CompressedAttention::sparse ? 2 * width : width;
    const std::string prefix = module.ends_with("indexer.") ? "indexer." : "";
    begin(module, "compressor.fused_wkv_wgate", prefix + "compressor.fused_wkv_wgate", 1, hidden_, 2 * channels);
    last().announced = Announced::unquantised;
    part("compressor.wkv", channels, hidden_);
    part("compressor.wgate", channels, hidden_);
  }

  void indexer(const std::string& attention, const DeepseekV4Config::Layer& kind) {
    const std::string module = attention + "indexer.";
    const std::int64_t all = details_.index_heads * details_.index_dim;
    begin(module, "wq_b", "indexer.wq_b", 1, details_.q_rank, all);
    part("wq_b", all, details_.q_rank);
    begin(module, "weights_proj", "indexer.weights_proj", 1, hidden_, details_.index_heads);
    last().announced = Announced::unquantised;
    part("weights_proj", details_.index_heads, hidden_);
    compressor(module, kind, details_.index_dim);
  }

  void experts() {
    const std::string module = layer_ + "ffn.";
    begin(module, "gate", "mlp.router", 1, hidden_, details_.experts);
    last().announced = Announced::unquantised;
    part("gate", details_.experts, hidden_);
    for (std::int64_t expert = 0; expert < details_.experts; ++expert) {
      mlp(fmt::format("{}experts.{}.", module, expert), "mlp.experts.", details_.expert_size,
          details_.fp4_experts ? Announced::fp4 : Announced::as_config);
    }
    mlp(module + "shared_experts.", "shared_experts.", details_.shared_size, Announced::as_config);
  }

  void mlp(const std::string& module, const std::string& role, std::int64_t size, Announced announced) {
    begin(module, "gate_up_proj", role + "gate_up_proj", tp_, hidden_, 2 * size / tp_);
    last().announced = announced;
    part("w1", size, hidden_, Split::rows);
    part("w3", size, hidden_, Split::rows);
    begin(module, "down_proj", role + "down_proj", tp_, size / tp_, hidden_);
    last().announced = announced;
    part("w2", hidden_, size, Split::cols);
  }

  const ModelConfig& config_;
  const DeepseekV4Config details_;
  std::int64_t hidden_;
  int tp_;
  std::string layer_;
  std::string module_;
  std::vector<Projection> projections_;
};

}  // namespace

std::vector<Projection> deepseek_v4_projections(const ModelConfig& config, const Topology& topology) {
  return DeepseekV4ProjectionLister(config, topology).list();
}

}  // namespace qpn8
