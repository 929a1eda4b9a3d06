#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/decoder.hpp"
#include "model/rope.hpp"
#include "model/topology_checks.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

std::vector<SplitDimension> split_dimensions(const ModelConfig& config, const DecoderSpec& spec) {
  const auto is_moe = [](const DecoderSpec::Layer& layer) { return layer.moe; };
  std::vector<SplitDimension> dimensions = {{"attention heads", config.heads},
                                            {"key/value heads", config.kv_heads, /*replicates=*/true}};
  if (!std::all_of(spec.layers.begin(), spec.layers.end(), is_moe)) {
    require_mlp_width(config);
    dimensions.push_back({"intermediate channels", config.intermediate_size});
  }
  if (std::any_of(spec.layers.begin(), spec.layers.end(), is_moe)) {
    dimensions.push_back({"expert channels", spec.moe.intermediate_size});
  }
  dimensions.push_back({"vocabulary entries", config.vocab_size});
  return dimensions;
}

/// Lists the projections of a decoder layer by layer; sizes are those of one rank.
class DecoderProjectionLister {
 public:
  DecoderProjectionLister(const ModelConfig& config, const DecoderSpec& spec, const Topology& topology)
      : config_(config), spec_(spec), tp_(topology.tp) {
    require_gated_silu(config);
    rope_frequencies(config);  // has no part in a projection, but what `run` refuses `plan` must refuse too
    require_stages(config, topology.pp);
    require_split(split_dimensions(config, spec), tp_);
  }

  std::vector<Projection> list() {
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      prefix_ = fmt::format("model.layers.{}.", layer);
      attention();
      if (spec_.layers[static_cast<std::size_t>(layer)].moe) {
        experts();
      } else {
        mlp();
      }
    }
    head();
    return std::move(projections_);
  }

 private:
  static ProjectionPart part(const std::string& module, std::int64_t rows, std::int64_t cols, bool bias) {
    return {.tensor = module + ".weight", .bias = bias ? module + ".bias" : "", .rows = rows, .cols = cols};
  }

  void add(const std::string& name, const std::string& role, std::int64_t k, std::int64_t n,
           std::vector<ProjectionPart> parts) {
    Projection projection;
    projection.desc.name = name;
    projection.desc.tensor.role = role;
    projection.desc.tensor.layer_tp = role == "mlp.router" ? 1 : tp_;
    projection.desc.tensor.k = k;
    projection.desc.tensor.n = n;
    projection.parts = std::move(parts);
    projections_.push_back(std::move(projection));
  }

  void attention() {
    const std::string module = prefix_ + "self_attn.";
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t q = config_.heads * config_.head_dim;
    const std::int64_t kv = config_.kv_heads * config_.head_dim;
    const std::int64_t kv_of_rank = std::max<std::int64_t>(config_.kv_heads / tp_, 1) * config_.head_dim;
    add(module + "qkv_proj", "self_attn.qkv_proj", config_.hidden_size, q / tp_ + 2 * kv_of_rank,
        {part(module + "q_proj", q, hidden, spec_.qkv_bias), part(module + "k_proj", kv, hidden, spec_.qkv_bias),
         part(module + "v_proj", kv, hidden, spec_.qkv_bias)});
    add(module + "o_proj", "self_attn.o_proj", q / tp_, config_.hidden_size,
        {part(module + "o_proj", hidden, q, spec_.o_bias)});
  }

  void mlp() {
    const std::string module = prefix_ + "mlp.";
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t inner = config_.intermediate_size;
    add(module + "gate_up_proj", "mlp.gate_up_proj", config_.hidden_size, 2 * inner / tp_,
        {part(module + "gate_proj", inner, hidden, spec_.mlp_bias),
         part(module + "up_proj", inner, hidden, spec_.mlp_bias)});
    add(module + "down_proj", "mlp.down_proj", inner / tp_, config_.hidden_size,
        {part(module + "down_proj", hidden, inner, spec_.mlp_bias)});
  }

  void experts() {
    const std::string module = prefix_ + "mlp.";
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t inner = spec_.moe.intermediate_size;
    add(module + "gate", "mlp.router", config_.hidden_size, spec_.moe.experts,
        {part(module + "gate", spec_.moe.experts, hidden, false)});
    for (std::int64_t expert = 0; expert < spec_.moe.experts; ++expert) {
      const std::string one = fmt::format("{}experts.{}.", module, expert);
      add(one + "gate_up_proj", "mlp.experts.gate_up_proj", config_.hidden_size, 2 * inner / tp_,
          {part(one + "gate_proj", inner, hidden, false), part(one + "up_proj", inner, hidden, false)});
      add(one + "down_proj", "mlp.experts.down_proj", inner / tp_, config_.hidden_size,
          {part(one + "down_proj", hidden, inner, false)});
    }
  }

  void head() {
    const std::string module = config_.tie_word_embeddings ? "model.embed_tokens" : "lm_head";
    add("lm_head", "lm_head", config_.hidden_size, config_.vocab_size / tp_,
        {part(module, config_.vocab_size, config_.hidden_size, false)});
  }

  const ModelConfig& config_;
  const DecoderSpec& spec_;
  int tp_;
  std::string prefix_;
  std::vector<Projection> projections_;
};

}  // namespace

std::vector<Projection> decoder_projections(const ModelConfig& config, const DecoderSpec& spec,
                                            const Topology& topology) {
  return DecoderProjectionLister(config, spec, topology).list();
}

}  // namespace qpn8
