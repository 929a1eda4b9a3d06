#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "model/architectures.hpp"
#include "model/decoder.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// mlp_only_layers: the layers that keep a dense MLP. Numbers beyond the last layer do no harm; a config that was cut
/// to fewer layers has them.
std::vector<std::int64_t> dense_layers(const ModelConfig& config) {
  const auto found = config.json.find("mlp_only_layers");
  if (found == config.json.end() || found->is_null()) return {};
  const auto is_layer = [](const nlohmann::json& entry) { return entry.is_number_integer() && entry >= 0; };
  const bool numbers = found->is_array() && std::all_of(found->begin(), found->end(), is_layer);
  if (numbers) return found->get<std::vector<std::int64_t>>();
  throw Error(Error::bad_file,
              fmt::format("{}: mlp_only_layers is {}, expected a list of layer numbers", config.file.string(),
                          printable(found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 80)));
}

// Every expert is a projection of its own in the plan: the bound keeps a hostile config from filling the memory with
// them.
constexpr std::int64_t kMostExperts = 4096;

std::int64_t expert_count(const ModelConfig& config) {
  const char* key = config.json.contains("num_experts") ? "num_experts" : "num_local_experts";
  const std::int64_t count = config.integer(key, 1);
  if (count <= kMostExperts) return count;
  throw Error(Error::bad_file,
              fmt::format("{}: {} is {}, expected at most {}", config.file.string(), key, count, kMostExperts));
}

// Qwen3 with routed experts: every decoder_sparse_step-th layer has them, except those in mlp_only_layers.
DecoderSpec qwen3_moe_spec(const ModelConfig& config) {
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
    throw Error(Error::bad_file, fmt::format("{}: num_experts_per_tok is {}, expected at most the {} experts",
                                             config.file.string(), spec.moe.experts_per_token, spec.moe.experts));
  }
  const std::int64_t step = config.integer_or("decoder_sparse_step", 1, 1);
  const std::vector<std::int64_t> dense = dense_layers(config);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const bool listed = std::find(dense.begin(), dense.end(), layer) != dense.end();
    spec.layers[static_cast<std::size_t>(layer)].moe = (layer + 1) % step == 0 && !listed;
  }
  return spec;
}

}  // namespace

const Architecture kQwen3Moe = decoder_architecture<qwen3_moe_spec>("qwen3_moe");

}  // namespace qpn8
