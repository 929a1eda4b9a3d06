#include "checkpoint/deepseek_v4_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "checkpoint/json_reader.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;

// What the published compress_ratios stand for.
constexpr std::int64_t kSparseRatio = 4;
constexpr std::int64_t kHeavyRatio = 128;
constexpr std::int64_t kLargestRatio = 256;
constexpr double kLargestNumber = 1e6;

// Every expert is a projection of its own in the plan: the bound keeps a hostile config from filling the memory with
// them.
constexpr std::int64_t kMostExperts = 4096;
constexpr std::int64_t kMostStreams = 16;
constexpr std::int64_t kMostSteps = 1000;

struct LayerKind {
  const char* name;
  CompressedAttention attention;
};

constexpr std::array kLayerKinds = {
    LayerKind{"sliding_attention", CompressedAttention::none},
    LayerKind{"compressed_sparse_attention", CompressedAttention::sparse},
    LayerKind{"heavily_compressed_attention", CompressedAttention::heavy},
};

class ConfigReader {
 public:
  explicit ConfigReader(const ModelConfig& config)
      : config_(config), file_(config.file.string()), reader_(config.json, file_) {}

  DeepseekV4Config read() {
    refuse_variants();
    read_attention();
    read_experts();
    read_streams();
    read_layers();
    read_rotation();
    return std::move(result_);
  }

 private:
  std::int64_t integer(const char* key) const { return reader_.integer(key, 1, kMaxConfigInteger); }

  void refuse_variants() const {
    const auto require = [&](const char* key, const char* known) {
      const std::string value = reader_.optional_string(key).value_or(known);
      if (value == known) return;
      throw Error(Error::unsupported,
                  fmt::format(R"({}: {} is "{}"; known: "{}")", file_, key, printable(value), known));
    };
    require("scoring_func", "sqrtsoftplus");
    require("topk_method", "noaux_tc");
    require("hidden_act", "silu");
    for (const char* key : {"attention_bias", "mlp_bias"}) {
      if (!reader_.optional_boolean(key).value_or(false)) continue;
      throw Error(Error::unsupported, fmt::format("{}: {} is true; known: false", file_, key));
    }
    if (config_.kv_heads != 1) reader_.refuse("num_key_value_heads", "1: all heads read one vector a token");
  }

  void read_attention() {
    result_.q_rank = integer("q_lora_rank");
    result_.o_rank = integer("o_lora_rank");
    result_.o_groups = integer("o_groups");
    if (config_.heads % result_.o_groups != 0) {
      reader_.refuse("o_groups", fmt::format("a divisor of the {} attention heads", config_.heads));
    }
    result_.window = integer("sliding_window");
  }

  void read_experts() {
    result_.experts = reader_.integer("n_routed_experts", 1, kMostExperts);
    result_.experts_per_token = reader_.integer("num_experts_per_tok", 1, result_.experts);
    result_.expert_size = integer("moe_intermediate_size");
    result_.shared_size = reader_.integer("n_shared_experts", 1, kMostExperts) * result_.expert_size;
    result_.swiglu_limit = reader_.optional_number("swiglu_limit", 0, kLargestNumber, true).value_or(0.0);
    result_.routed_scale = reader_.optional_number("routed_scaling_factor", 0, kLargestNumber, false).value_or(1.0);
    // The published FP8 checkpoints have FP4 experts unless they say otherwise.
    const std::string type = reader_.optional_string("expert_dtype").value_or("fp4");
    result_.fp4_experts = config_.fp8_weights && type == "fp4";
  }

  void read_streams() {
    result_.streams = reader_.integer("hc_mult", 1, kMostStreams);
    result_.sinkhorn_steps = reader_.integer("hc_sinkhorn_iters", 1, kMostSteps);
    result_.stream_eps = reader_.optional_number("hc_eps", 0, 1, true).value_or(1e-6);
  }

  void read_layers() {
    result_.layers.resize(static_cast<std::size_t>(config_.layers));
    if (reader_.find("layer_types") != nullptr) {
      read_layer_types();
    } else {
      read_ratios();
    }
    read_routing();
    const bool sparse = std::any_of(result_.layers.begin(), result_.layers.end(),
                                    [](const auto& layer) { return layer.attention == CompressedAttention::sparse; });
    if (!sparse) return;
    result_.index_heads = integer("index_n_heads");
    result_.index_dim = integer("index_head_dim");
    result_.index_topk = integer("index_topk");
  }

  /// Tokens an entry of a kind of layer.
  std::int64_t ratio_of(CompressedAttention attention) const {
    if (attention == CompressedAttention::none) return 0;
    const bool sparse = attention == CompressedAttention::sparse;
    const json* rates = reader_.optional_object("compress_rates");
    const char* key = sparse ? "compressed_sparse_attention" : "heavily_compressed_attention";
    const std::int64_t published = sparse ? kSparseRatio : kHeavyRatio;
    if (rates == nullptr) return published;
    return JsonReader(*rates, file_, "compress_rates").optional_integer(key, 1, kLargestRatio).value_or(published);
  }

  void set_kind(std::size_t layer, CompressedAttention attention) {
    result_.layers[layer].attention = attention;
    result_.layers[layer].ratio = ratio_of(attention);
  }

  std::vector<std::string> types(const char* key) const {
    std::vector<std::string> names = reader_.strings(key);
    if (static_cast<std::int64_t>(names.size()) == config_.layers) return names;
    throw Error(Error::bad_file, fmt::format("{}: {} has {} entries, expected one for each of the {} layers", file_,
                                             key, names.size(), config_.layers));
  }

  void read_layer_types() {
    const std::vector<std::string> names = types("layer_types");
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto* const kind = std::find_if(kLayerKinds.begin(), kLayerKinds.end(),
                                            [&](const LayerKind& known) { return names[i] == known.name; });
      if (kind == kLayerKinds.end()) {
        throw Error(Error::unsupported,
                    fmt::format("{}: layer_types[{}] is \"{}\"; known: sliding_attention, compressed_sparse_attention, "
                                "heavily_compressed_attention",
                                file_, i, printable(names[i])));
      }
      set_kind(i, kind->attention);
    }
  }

  /// Entries beyond the last layer belong to the block that predicts further tokens, which is not run.
  void read_ratios() {
    const json* ratios = reader_.find("compress_ratios");
    const bool enough =
        ratios != nullptr && ratios->is_array() && static_cast<std::int64_t>(ratios->size()) >= config_.layers;
    if (!enough) reader_.refuse("compress_ratios", "an entry for each layer (or layer_types)");
    for (std::size_t i = 0; i < result_.layers.size(); ++i) {
      const json& ratio = ratios->at(i);
      if (ratio == 0) {
        set_kind(i, CompressedAttention::none);
      } else if (ratio == kSparseRatio) {
        set_kind(i, CompressedAttention::sparse);
      } else if (ratio == kHeavyRatio) {
        set_kind(i, CompressedAttention::heavy);
      } else {
        throw Error(Error::unsupported, fmt::format("{}: compress_ratios[{}] is {}; known: 0, {}, {}", file_, i,
                                                    json_in_message(ratio), kSparseRatio, kHeavyRatio));
      }
    }
  }

  void read_routing() {
    if (reader_.find("mlp_layer_types") == nullptr) {
      const std::int64_t hashed = reader_.optional_integer("num_hash_layers", 0, kMaxConfigInteger).value_or(3);
      for (std::size_t i = 0; i < result_.layers.size(); ++i) {
        result_.layers[i].hash_routing = static_cast<std::int64_t>(i) < hashed;
      }
      return;
    }
    const std::vector<std::string> names = types("mlp_layer_types");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] != "hash_moe" && names[i] != "moe") {
        throw Error(Error::unsupported, fmt::format("{}: mlp_layer_types[{}] is \"{}\"; known: hash_moe, moe", file_, i,
                                                    printable(names[i])));
      }
      result_.layers[i].hash_routing = names[i] == "hash_moe";
    }
  }

  void read_rotation() {
    result_.main_rope = config_.rope.type == "nested" ? nested("main") : plain(config_.rope.theta);
    result_.entry_rope = config_.rope.type == "nested" ? nested("compress") : scaled();
    // The attention factor of yarn is left out whatever the parameters say.
    result_.entry_rope.parameters["attention_factor"] = 1.0;
    const double published = 64.0 / 512.0;
    const double factor = config_.rope.type == "nested"                      ? result_.main_rope.partial_rotary_factor
                          : reader_.find("partial_rotary_factor") != nullptr ? config_.rope.partial_rotary_factor
                                                                             : published;
    const auto by_factor = static_cast<std::int64_t>(static_cast<double>(config_.head_dim) * factor);
    result_.rope_dims = reader_.optional_integer("qk_rope_head_dim", 1, kMaxConfigInteger).value_or(by_factor);
    const std::int64_t narrowest =
        result_.index_dim > 0 ? std::min(config_.head_dim, result_.index_dim) : config_.head_dim;
    if (result_.rope_dims < 2 || result_.rope_dims % 2 != 0 || result_.rope_dims > narrowest) {
      throw Error(Error::bad_file, fmt::format("{}: qk_rope_head_dim is {}, expected an even number from 2 to {}",
                                               file_, result_.rope_dims, narrowest));
    }
  }

  static RopeConfig plain(double theta) {
    RopeConfig rope;
    rope.theta = theta;
    return rope;
  }

  RopeConfig scaled() const {
    RopeConfig rope = config_.rope;
    rope.theta = reader_.optional_number("compress_rope_theta", 0, 1e15, false).value_or(160000.0);
    return rope;
  }

  RopeConfig nested(const char* name) const {
    const JsonReader all(config_.rope.parameters, file_, "rope_parameters");
    const json* object = all.optional_object(name);
    if (object == nullptr) all.refuse(name, "an object");
    const JsonReader reader(*object, file_, fmt::format("rope_parameters.{}", name));
    RopeConfig rope;
    rope.type = reader.optional_string("rope_type").value_or("default");
    rope.theta = reader.optional_number("rope_theta", 0, 1e15, false).value_or(rope.theta);
    rope.partial_rotary_factor = reader.optional_number("partial_rotary_factor", 0, 1, false).value_or(1.0);
    rope.parameters = *object;
    for (const char* own : {"rope_type", "rope_theta", "partial_rotary_factor"}) rope.parameters.erase(own);
    return rope;
  }

  const ModelConfig& config_;
  std::string file_;
  JsonReader reader_;
  DeepseekV4Config result_;
};

}  // namespace

DeepseekV4Config read_deepseek_v4(const ModelConfig& config) { return ConfigReader(config).read(); }

}  // namespace qpn8
