#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/ngram_tables.hpp"
#include "checkpoint/tensor_lists.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// The layout that Hugging Face's library saves: experts and the parts of n-gram tables one tensor each.
class Qwen4ExpTensorList {
 public:
  explicit Qwen4ExpTensorList(const ModelConfig& config)
      : config_(config),
        hidden_(config.hidden_size),
        streams_(config.integer_or("hc_count", 4, 1)),
        table_layers_(table_layers_of(config)) {}

  std::vector<ListedTensor> all() {
    tensors_.matrix("model.embed_tokens.weight", {config_.vocab_size, hidden_});
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      const auto table = std::find(table_layers_.begin(), table_layers_.end(), layer + 1);
      if (table != table_layers_.end()) ngrams(prefix + "ple.", table - table_layers_.begin());
      streams(prefix + "attn_hyper_connection.", true);
      if (is_linear(layer)) {
        linear_attention(prefix + "linear_attn.");
      } else {
        sparse_attention(prefix + "self_attn.");
      }
      streams(prefix + "mlp_hyper_connection.", true);
      experts(prefix + "mlp.");
    }
    streams("model.hyper_connection_mixer.", false);
    if (!config_.tie_word_embeddings) tensors_.matrix("lm_head.weight", {config_.vocab_size, hidden_});
    return tensors_.take();
  }

 private:
  /// Counted from 1, sorted, each once.
  static std::vector<std::int64_t> table_layers_of(const ModelConfig& config) {
    const auto list = config.json.find("ple_layer_ids");
    if (list == config.json.end() || list->is_null()) return {};
    const bool integers = list->is_array() && std::all_of(list->begin(), list->end(),
                                                          [](const auto& id) { return id.is_number_unsigned(); });
    if (!integers) {
      throw Error(Error::bad_file, config.file.string() + ": ple_layer_ids: expected a list of layers, from 1");
    }
    auto layers = list->get<std::vector<std::int64_t>>();
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    return layers;
  }

  bool is_linear(std::int64_t layer) const {
    const auto types = config_.json.find("layer_types");
    if (types != config_.json.end() && types->is_array() && layer < static_cast<std::int64_t>(types->size())) {
      return types->at(static_cast<std::size_t>(layer)) == "linear_attention";
    }
    return (layer + 1) % config_.integer_or("full_attention_interval", 4, 1) != 0;
  }

  /// The weight of a norm that multiplies by 1 plus it.
  void centred_norm(const std::string& name, std::int64_t size) { tensors_.bias(name + ".weight", {size}); }

  void linear(const std::string& name, std::int64_t rows, std::int64_t cols) {
    tensors_.matrix(name + ".weight", {rows, cols});
  }

  /// Between the streams of the residual and a block; the last one injects nothing back.
  void streams(const std::string& prefix, bool injects) {
    const std::int64_t wide = streams_ * hidden_;
    const std::int64_t rank = config_.integer_or("hc_lowrank", 320, 1);
    centred_norm(prefix + "hc_norm", wide);
    linear(prefix + "input_mix_weight_down", rank, wide);
    linear(prefix + "input_mix_weight_up", wide, rank);
    if (injects) linear(prefix + "block_inject_weight", streams_, wide);
  }

  void linear_attention(const std::string& prefix) {
    const std::int64_t keys = config_.integer("linear_num_key_heads", 1) * config_.integer("linear_key_head_dim", 1);
    const std::int64_t heads = config_.integer("linear_num_value_heads", 1);
    const std::int64_t head_dim = config_.integer("linear_value_head_dim", 1);
    const std::int64_t channels = 2 * keys + heads * head_dim;
    linear(prefix + "in_proj_qkv", channels, hidden_);
    linear(prefix + "in_proj_z", heads * head_dim, hidden_);
    linear(prefix + "in_proj_b", heads, hidden_);
    linear(prefix + "in_proj_a", heads, hidden_);
    tensors_.matrix(prefix + "conv1d.weight", {channels, 1, config_.integer_or("linear_conv_kernel_dim", 4, 1)});
    tensors_.norm(prefix + "A_log", heads);
    tensors_.bias(prefix + "dt_bias", {heads});
    tensors_.norm(prefix + "norm.weight", head_dim);
    linear(prefix + "out_proj", hidden_, heads * head_dim);
  }

  void sparse_attention(const std::string& prefix) {
    const std::int64_t head_dim = config_.head_dim;
    linear(prefix + "q_proj", config_.heads * 2 * head_dim, hidden_);
    linear(prefix + "k_proj", config_.kv_heads * head_dim, hidden_);
    linear(prefix + "v_proj", config_.kv_heads * head_dim, hidden_);
    linear(prefix + "o_proj", hidden_, config_.heads * head_dim);
    centred_norm(prefix + "q_norm", head_dim);
    centred_norm(prefix + "k_norm", head_dim);
    const std::int64_t width = config_.integer("indexer_head_dim", 1);
    linear(prefix + "indexer.index_qk_proj", (config_.integer("indexer_n_heads", 1) + 1) * width, hidden_);
    centred_norm(prefix + "indexer.q_layernorm", width);
    centred_norm(prefix + "indexer.k_layernorm", width);
  }

  void mlp(const std::string& prefix, std::int64_t intermediate) {
    linear(prefix + "gate_proj", intermediate, hidden_);
    linear(prefix + "up_proj", intermediate, hidden_);
    linear(prefix + "down_proj", hidden_, intermediate);
  }

  void experts(const std::string& prefix) {
    const std::int64_t count = config_.integer("num_experts", 1);
    linear(prefix + "gate", count, hidden_);
    linear(prefix + "shared_expert_gate", 1, hidden_);
    mlp(prefix + "shared_expert.", config_.integer("shared_expert_intermediate_size", 1));
    for (std::int64_t expert = 0; expert < count; ++expert) {
      mlp(fmt::format("{}experts.{}.", prefix, expert), config_.integer("moe_intermediate_size", 1));
    }
  }

  void integers(const std::string& name, std::vector<std::int64_t> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    tensors_.add({.name = name,
                  .shape = {count},
                  .role = TensorRole::integers,
                  .dtype = DType::i64,
                  .integer = [values = std::move(values)](std::int64_t index) {
                    return values[static_cast<std::size_t>(index)];
                  }});
  }

  void ngrams(const std::string& prefix, std::int64_t rank) {
    const NgramTables tables = ngram_tables(config_, rank);
    const std::int64_t wide = streams_ * hidden_;
    const std::int64_t embedded = config_.integer_or("ple_embed_dim", hidden_, 1);
    linear(prefix + "key_proj", wide, embedded);
    linear(prefix + "value_proj", hidden_, embedded);
    for (const char* name : {"norm_key", "norm_query", "norm_conv"}) centred_norm(prefix + name, wide);
    tensors_.matrix(prefix + "conv1d.weight", {wide, 1, config_.integer_or("ple_conv_kernel_size", 4, 1)});
    const std::string embedding = prefix + "ple_embedding.";
    integers(embedding + "layer_multipliers", tables.multipliers);
    integers(embedding + "ngram_heads_vocab_sizes", tables.sizes);
    integers(embedding + "ngram_heads_offsets", tables.offsets);
    const std::int64_t parts = config_.integer_or("split_ngram_parts", 512, 1);
    const std::int64_t rows = (tables.rows + parts - 1) / parts;
    const std::int64_t width = embedded / static_cast<std::int64_t>(tables.sizes.size());
    for (std::int64_t part = 0; part * rows < tables.rows; ++part) {
      tensors_.matrix(fmt::format("{}ngram_embedding.shard_{}.weight", embedding, part),
                      {std::min(rows, tables.rows - part * rows), width});
    }
  }

  const ModelConfig& config_;
  std::int64_t hidden_;
  std::int64_t streams_;
  std::vector<std::int64_t> table_layers_;
  TensorCollector tensors_;
};

}  // namespace

std::vector<ListedTensor> list_qwen4_exp_tensors(const ModelConfig& config) { return Qwen4ExpTensorList(config).all(); }

}  // namespace qpn8
