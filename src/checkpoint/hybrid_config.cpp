#include "checkpoint/hybrid_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/printable.hpp"
#include "checkpoint/json_reader.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

// What bounds the memory that a hostile config takes before a weight is seen, and what the kernels hold on the stack.
constexpr std::int64_t kMostRouted = 4096;
constexpr std::int64_t kMostTapsOrOrders = 16;
constexpr std::int64_t kMostGatedStreams = 16;
constexpr std::int64_t kLargestDim = 65536;

class HybridReader {
 public:
  explicit HybridReader(const ModelConfig& config)
      : config_(config), file_(config.file.string()), reader_(config.json, file_) {}

  HybridConfig read() {
    result_.layers.resize(static_cast<std::size_t>(config_.layers));
    read_layer_types();
    read_linear_attention();
    read_feed_forward();
    if (config_.model_type == "qwen4_exp_text") {
      read_streams();
      read_indexer();
      read_ngrams();
    }
    refuse_bias();
    return std::move(result_);
  }

 private:
  std::int64_t size(const char* key, std::int64_t fallback, std::int64_t most = kLargestDim) const {
    return reader_.optional_integer(key, 1, most).value_or(fallback);
  }

  void read_layer_types() {
    const std::vector<std::string> names = reader_.strings("layer_types");
    if (!names.empty() && static_cast<std::int64_t>(names.size()) != config_.layers) {
      throw Error(Error::bad_file, fmt::format("{}: layer_types has {} entries, expected one for each of the {} layers",
                                               file_, names.size(), config_.layers));
    }
    const std::int64_t interval = size("full_attention_interval", 4);
    for (std::size_t i = 0; i < result_.layers.size(); ++i) {
      result_.layers[i].linear =
          names.empty() ? (static_cast<std::int64_t>(i) + 1) % interval != 0 : linear(names[i], i);
    }
  }

  bool linear(const std::string& name, std::size_t layer) const {
    if (name == "linear_attention") return true;
    for (const char* full : {"full_attention", "qwen_sparse_attention", "indexed_attention"}) {
      if (name == full) return false;
    }
    throw Error(Error::unsupported,
                fmt::format("{}: layer_types[{}] is \"{}\"; known: linear_attention, full_attention, "
                            "qwen_sparse_attention, indexed_attention",
                            file_, layer, printable(name)));
  }

  void read_linear_attention() {
    result_.key_heads = size("linear_num_key_heads", 16);
    result_.value_heads = size("linear_num_value_heads", 32);
    result_.key_dim = size("linear_key_head_dim", 128);
    result_.value_dim = size("linear_value_head_dim", 128);
    result_.conv_taps = size("linear_conv_kernel_dim", 4, kMostTapsOrOrders);
    result_.grouped = config_.model_type == "qwen3_next";
    if (result_.value_heads % result_.key_heads != 0) {
      throw Error(Error::bad_file,
                  fmt::format("{}: linear_num_value_heads is {}, expected a multiple of the {} key heads", file_,
                              result_.value_heads, result_.key_heads));
    }
    const std::string gate = reader_.optional_string("output_gate_type").value_or(config_.hidden_act);
    if (gate != "silu" && gate != "swish" && gate != "sigmoid") {
      throw Error(Error::unsupported,
                  fmt::format(R"({}: output_gate_type is "{}"; known: "silu", "sigmoid")", file_, printable(gate)));
    }
    result_.silu_gate = gate != "sigmoid";
  }

  void read_feed_forward() {
    const bool dense_model = config_.model_type == "qwen3_5_text";
    result_.experts = dense_model ? 0 : reader_.optional_integer("num_experts", 0, kMostRouted).value_or(512);
    for (std::size_t i = 0; i < result_.layers.size(); ++i) result_.layers[i].experts = has_experts(i);
    if (result_.experts == 0) return;
    result_.experts_per_token = size("num_experts_per_tok", 10, kMostRouted);
    result_.expert_size = size("moe_intermediate_size", 512);
    result_.shared_size = size("shared_expert_intermediate_size", 512);
    result_.normalise_experts = config_.model_type == "qwen3_5_moe_text" || config_.boolean_or("norm_topk_prob", true);
    if (result_.experts_per_token > result_.experts) {
      throw Error(Error::bad_file, fmt::format("{}: num_experts_per_tok is {}, expected at most the {} experts", file_,
                                               result_.experts_per_token, result_.experts));
    }
  }

  /// Of qwen3_next alone: some layers may keep one MLP.
  bool has_experts(std::size_t layer) const {
    if (result_.experts == 0) return false;
    if (config_.model_type != "qwen3_next") return true;
    const auto number = static_cast<std::int64_t>(layer);
    const std::vector<std::int64_t> dense = layer_numbers("mlp_only_layers");
    const bool listed = std::find(dense.begin(), dense.end(), number) != dense.end();
    return !listed && (number + 1) % size("decoder_sparse_step", 1) == 0;
  }

  std::vector<std::int64_t> layer_numbers(const char* key) const {
    const nlohmann::json* list = reader_.find(key);
    if (list == nullptr) return {};
    const auto is_layer = [](const nlohmann::json& entry) { return entry.is_number_unsigned(); };
    if (!list->is_array() || !std::all_of(list->begin(), list->end(), is_layer)) {
      reader_.refuse(key, "a list of layer numbers");
    }
    return list->get<std::vector<std::int64_t>>();
  }

  void read_streams() {
    result_.streams = size("hc_count", 4, kMostGatedStreams);
    result_.low_rank = size("hc_lowrank", 320);
  }

  void read_indexer() {
    const auto is_full = [](const HybridConfig::Layer& layer) { return !layer.linear; };
    if (std::none_of(result_.layers.begin(), result_.layers.end(), is_full)) return;
    HybridConfig::Indexer indexer;
    indexer.heads = reader_.integer("indexer_n_heads", 1, kLargestDim);
    indexer.width = reader_.integer("indexer_head_dim", 1, kLargestDim);
    indexer.budget = reader_.integer("indexer_budget", 1, kMaxConfigInteger);
    indexer.ratio = reader_.integer("indexer_compress_ratio", 1, kLargestDim);
    if (reader_.integer("indexer_kv_heads", 1, kLargestDim) != 1) {
      throw Error(Error::unsupported,
                  fmt::format("{}: indexer_kv_heads is {}; known: 1", file_, reader_.find("indexer_kv_heads")->dump()));
    }
    if (indexer.budget % indexer.ratio != 0) {
      throw Error(Error::bad_file,
                  fmt::format("{}: indexer_budget is {}, expected a multiple of indexer_compress_ratio {}", file_,
                              indexer.budget, indexer.ratio));
    }
    const double rotated = static_cast<double>(config_.head_dim) * config_.rope.partial_rotary_factor;
    if (rotated > static_cast<double>(indexer.width)) {
      throw Error(Error::bad_file,
                  fmt::format("{}: indexer_head_dim is {}, expected at least the {} dimensions that are "
                              "rotated",
                              file_, indexer.width, rotated));
    }
    result_.indexer = indexer;
  }

  void read_ngrams() {
    std::vector<std::int64_t> numbers = layer_numbers("ple_layer_ids");
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    if (numbers.empty()) return;
    for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
      const std::int64_t layer = numbers[rank] - 1;  // counted from 1
      if (layer < 0 || layer >= config_.layers || !result_.layers[static_cast<std::size_t>(layer)].linear) {
        // A config that was cut to fewer layers may name those that are gone.
        if (layer >= config_.layers) continue;
        throw Error(Error::bad_file, fmt::format("{}: ple_layer_ids names {}, expected linear attention layers, from 1",
                                                 file_, numbers[rank]));
      }
      result_.layers[static_cast<std::size_t>(layer)].ngrams = static_cast<std::int64_t>(rank);
    }
    HybridConfig::Ngrams ngrams;
    ngrams.width = size("ple_embed_dim", config_.hidden_size);
    ngrams.taps = size("ple_conv_kernel_size", 4, kMostTapsOrOrders);
    ngrams.orders = reader_.optional_integer("ngram_size", 2, kMostTapsOrOrders).value_or(3);
    const std::int64_t heads = (ngrams.orders - 1) * size("heads_per_ngram", 8);
    if (ngrams.width % heads != 0) {
      throw Error(Error::bad_file, fmt::format("{}: ple_embed_dim is {}, expected a multiple of the {} n-gram heads",
                                               file_, ngrams.width, heads));
    }
    if (config_.eos_tokens.empty()) reader_.refuse("eos_token_id", "a token id, which ends an n-gram's history");
    ngrams.boundary = config_.eos_tokens.front();
    result_.ngrams = ngrams;
  }

  void refuse_bias() const {
    if (!config_.boolean_or("attention_bias", false)) return;
    throw Error(Error::unsupported, fmt::format("{}: attention_bias is true; known: false", file_));
  }

  const ModelConfig& config_;
  std::string file_;
  JsonReader reader_;
  HybridConfig result_;
};

}  // namespace

HybridConfig read_hybrid(const ModelConfig& config) { return HybridReader(config).read(); }

}  // namespace qpn8
