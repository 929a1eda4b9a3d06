#include <algorithm>

#include "model/architectures.hpp"
#include "model/decoder.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// mlp_only_layers: the layers that keep a dense MLP.
bool is_dense(const ModelConfig& config, std::int64_t layer) {
  const auto dense = config.json.find("mlp_only_layers");
  if (dense == config.json.end() || dense->is_null()) return false;
  if (!dense->is_array()) {
    throw Error(Error::bad_file,
                config.file.string() + ": mlp_only_layers is " + dense->dump() + ", expected a list of layer numbers");
  }
  return std::any_of(dense->begin(), dense->end(), [layer](const nlohmann::json& entry) { return entry == layer; });
}

// Every expert is a projection of its own in the plan: the bound keeps a hostile config from filling the memory with
// them.
constexpr std::int64_t kMostExperts = 4096;

std::int64_t expert_count(const ModelConfig& config) {
  const char* key = config.json.contains("num_experts") ? "num_experts" : "num_local_experts";
  const std::int64_t count = config.integer(key, 1);
  if (count <= kMostExperts) return count;
  throw Error(Error::bad_file, config.file.string() + ": " + key + " is " + std::to_string(count) +
                                   ", expected at most " + std::to_string(kMostExperts));
}

// Qwen3 with routed experts: every decoder_sparse_step-th layer has them, except those in mlp_only_layers.
DecoderSpec spec_of(const ModelConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = config.boolean_or("attention_bias", false);
  spec.o_bias = spec.qkv_bias;
  spec.qk_norm = true;
  spec.layers = windowed_layers(config);
  spec.moe.experts = expert_count(config);
  spec.moe.experts_per_token = config.integer("num_experts_per_tok", 1);
  spec.moe.intermediate_size = config.integer("moe_intermediate_size", 1);
  spec.moe.normalise = config.boolean_or("norm_topk_prob", false);
  if (spec.moe.experts_per_token > spec.moe.experts) {
    throw Error(Error::bad_file, config.file.string() + ": num_experts_per_tok is " +
                                     std::to_string(spec.moe.experts_per_token) + ", expected at most the " +
                                     std::to_string(spec.moe.experts) + " experts");
  }
  const std::int64_t step = config.integer_or("decoder_sparse_step", 1, 1);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    spec.layers[static_cast<std::size_t>(layer)].moe = (layer + 1) % step == 0 && !is_dense(config, layer);
  }
  return spec;
}

std::vector<Projection> projections(const ModelConfig& config, const Topology& topology) {
  return decoder_projections(config, spec_of(config), topology);
}

std::unique_ptr<Model> load(const ModelSource& source) { return load_decoder(source, spec_of(*source.config)); }

}  // namespace

const Architecture kQwen3Moe = {.model_type = "qwen3_moe", .projections = projections, .load = load};

}  // namespace qpn8
