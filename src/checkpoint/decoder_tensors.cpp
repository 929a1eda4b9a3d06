#include "checkpoint/tensor_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace qpn8 {
namespace {

/// What tells the checkpoints of the pre-norm decoders apart.
struct Form {
  std::string_view model_type;
  bool (*qkv_bias)(const ModelConfig&);
  bool (*o_bias)(const ModelConfig&);
  bool (*mlp_bias)(const ModelConfig&);
  bool qk_norm;
  bool experts;
};

bool never(const ModelConfig&) { return false; }
bool always(const ModelConfig&) { return true; }
bool attention_bias(const ModelConfig& config) { return config.boolean_or("attention_bias", false); }
bool mlp_bias(const ModelConfig& config) { return config.boolean_or("mlp_bias", false); }

constexpr std::array kForms = {
    Form{"llama", attention_bias, attention_bias, mlp_bias, false, false},
    Form{"qwen2", always, never, never, false, false},
    Form{"qwen3", attention_bias, attention_bias, never, true, false},
    Form{"qwen3_moe", attention_bias, attention_bias, never, true, true},
};

const Form& form_of(const ModelConfig& config) {
  return *std::find_if(kForms.begin(), kForms.end(),
                       [&](const Form& form) { return form.model_type == config.model_type; });
}

bool has_experts(const Form& form, const ModelConfig& config, std::int64_t layer) {
  if (!form.experts || (layer + 1) % config.integer_or("decoder_sparse_step", 1, 1) != 0) return false;
  const auto dense = config.json.find("mlp_only_layers");
  return dense == config.json.end() || !dense->is_array() ||
         std::find(dense->begin(), dense->end(), layer) == dense->end();
}

class DecoderTensorList {
 public:
  explicit DecoderTensorList(const ModelConfig& config) : config_(config), form_(form_of(config)) {}

  std::vector<ListedTensor> all() {
    const std::int64_t hidden = config_.hidden_size;
    tensors_.matrix("model.embed_tokens.weight", {config_.vocab_size, hidden});
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      tensors_.norm(prefix + "input_layernorm.weight", hidden);
      attention(prefix + "self_attn.");
      tensors_.norm(prefix + "post_attention_layernorm.weight", hidden);
      if (has_experts(form_, config_, layer)) {
        experts(prefix + "mlp.");
      } else {
        mlp(prefix + "mlp.", config_.intermediate_size);
      }
    }
    tensors_.norm("model.norm.weight", hidden);
    if (!config_.tie_word_embeddings) tensors_.matrix("lm_head.weight", {config_.vocab_size, hidden});
    return tensors_.take();
  }

 private:
  void linear(const std::string& name, std::int64_t rows, std::int64_t cols, bool bias) {
    tensors_.matrix(name + ".weight", {rows, cols});
    if (bias) tensors_.bias(name + ".bias", {rows});
  }

  void attention(const std::string& prefix) {
    const std::int64_t q = config_.heads * config_.head_dim;
    const std::int64_t kv = config_.kv_heads * config_.head_dim;
    const bool qkv_bias = form_.qkv_bias(config_);
    linear(prefix + "q_proj", q, config_.hidden_size, qkv_bias);
    linear(prefix + "k_proj", kv, config_.hidden_size, qkv_bias);
    linear(prefix + "v_proj", kv, config_.hidden_size, qkv_bias);
    linear(prefix + "o_proj", config_.hidden_size, q, form_.o_bias(config_));
    if (!form_.qk_norm) return;
    tensors_.norm(prefix + "q_norm.weight", config_.head_dim);
    tensors_.norm(prefix + "k_norm.weight", config_.head_dim);
  }

  void mlp(const std::string& prefix, std::int64_t intermediate) {
    const bool bias = form_.mlp_bias(config_);
    linear(prefix + "gate_proj", intermediate, config_.hidden_size, bias);
    linear(prefix + "up_proj", intermediate, config_.hidden_size, bias);
    linear(prefix + "down_proj", config_.hidden_size, intermediate, bias);
  }

  void experts(const std::string& prefix) {
    const char* key = config_.json.contains("num_local_experts") ? "num_local_experts" : "num_experts";
    const std::int64_t count = config_.integer(key, 1);
    const std::int64_t intermediate = config_.integer("moe_intermediate_size", 1);
    linear(prefix + "gate", count, config_.hidden_size, false);
    for (std::int64_t expert = 0; expert < count; ++expert) {
      mlp(fmt::format("{}experts.{}.", prefix, expert), intermediate);
    }
  }

  const ModelConfig& config_;
  const Form& form_;
  TensorCollector tensors_;
};

}  // namespace

std::vector<ListedTensor> list_decoder_tensors(const ModelConfig& config) { return DecoderTensorList(config).all(); }

}  // namespace qpn8
