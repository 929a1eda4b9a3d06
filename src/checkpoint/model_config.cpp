#include "checkpoint/model_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "checkpoint/json_reader.hpp"
#include "qpn8/error.hpp"
#include "qpn8/pack.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;

/// Far above every published model, and low enough together that the bytes of a weight and of a KV cache fit 64 bits.
struct Largest {
  static constexpr std::int64_t vocab = std::int64_t{1} << 24;
  static constexpr std::int64_t hidden = std::int64_t{1} << 20;
  static constexpr std::int64_t intermediate = std::int64_t{1} << 22;
  static constexpr std::int64_t layers = std::int64_t{1} << 12;
  static constexpr std::int64_t heads = std::int64_t{1} << 14;
  static constexpr std::int64_t head_dim = std::int64_t{1} << 14;
  static constexpr std::int64_t heads_times_head_dim = std::int64_t{1} << 22;
  static constexpr std::int64_t positions = std::int64_t{1} << 25;
};

/// The decoder's own keys: the file itself, or its text_config with what only the file around it has.
json decoder_part(json file, const std::string& name) {
  const JsonReader reader(file, name);
  const json* nested = reader.optional_object("text_config");
  if (nested == nullptr) return file;
  json decoder = *nested;
  for (const auto& [key, value] : file.items()) {
    if (key != "text_config" && !decoder.contains(key)) decoder[key] = value;
  }
  return decoder;
}

bool maps_names_to_objects(const json& object) {
  return !object.empty() && std::all_of(object.begin(), object.end(), [](const json& v) { return v.is_object(); });
}

std::string rope_type(const JsonReader& rope, const json& object, bool current_form) {
  if (const auto type = rope.optional_string("rope_type")) return *type;
  if (const auto older = rope.optional_string("type")) return *older;
  if (current_form && maps_names_to_objects(object)) return "nested";
  if (!current_form && !object.empty()) rope.refuse("rope_type", "the name of a rotary embedding");
  return "default";
}

/// Configs that carry both forms, for readers old and new, must mean the same by both: which of them wins where they
/// differ is not the same in all readers.
void refuse_contradictions(const JsonReader& config, const json& current, const std::string& file) {
  const auto require_same = [&](const char* key, const json& older, const json& newer, const char* newer_key) {
    if (older == newer) return;
    throw Error(Error::bad_file, fmt::format("{}: {} is {}, rope_parameters.{} is {}, expected the same in both", file,
                                             key, json_in_message(older), newer_key, json_in_message(newer)));
  };
  for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
    const json* older = config.find(key);
    if (older != nullptr && current.contains(key)) require_same(key, *older, current[key], key);
  }
  const json* scaling = config.optional_object("rope_scaling");
  if (scaling == nullptr || scaling->empty()) return;
  const json older_type = rope_type(JsonReader(*scaling, file, "rope_scaling"), *scaling, false);
  const json newer_type = rope_type(JsonReader(current, file, "rope_parameters"), current, true);
  require_same("rope_scaling.rope_type", older_type, newer_type, "rope_type");
  for (const auto& [key, value] : scaling->items()) {
    if (key == "rope_type" || key == "type" || value.is_null()) continue;
    const std::string older = "rope_scaling." + key;
    require_same(older.c_str(), value, current.contains(key) ? current[key] : json(), key.c_str());
  }
}

RopeConfig read_rope(const JsonReader& config, const std::string& file) {
  const bool current_form = config.find("rope_parameters") != nullptr;
  const char* key = current_form ? "rope_parameters" : "rope_scaling";
  const json* found = config.optional_object(key);
  if (current_form) refuse_contradictions(config, *found, file);
  const json object = found != nullptr ? *found : json::object();
  const JsonReader parameters(object, file, key);

  RopeConfig rope;
  rope.type = rope_type(parameters, object, current_form);
  constexpr double kMaxTheta = 1e15;
  for (const JsonReader* reader : {&config, &parameters}) {
    rope.theta = reader->optional_number("rope_theta", 0, kMaxTheta, false).value_or(rope.theta);
    rope.partial_rotary_factor =
        reader->optional_number("partial_rotary_factor", 0, 1, false).value_or(rope.partial_rotary_factor);
  }
  rope.parameters = object;
  for (const char* own : {"rope_type", "type", "rope_theta", "partial_rotary_factor"}) rope.parameters.erase(own);
  return rope;
}

/// Whether the weights are FP8 E4M3 with block scales; the one quantisation that is supported, so that the rest is
/// refused here. How activations were to be quantised does not matter: they are not.
bool read_quantization(const JsonReader& config, const std::string& file) {
  const json* object = config.optional_object("quantization_config");
  if (object == nullptr) return false;
  const JsonReader reader(*object, file, "quantization_config");
  const auto method = reader.optional_string("quant_method");
  if (!method) reader.refuse("quant_method", "\"fp8\"");
  const auto require = [&](const char* key, const json& value, const json& supported) {
    if (value == supported) return;
    throw Error(Error::unsupported, fmt::format("{}: quantization_config.{} is {}, supported is {}", file, key,
                                                json_in_message(value), supported.dump()));
  };
  require("quant_method", *method, "fp8");
  require("fmt", reader.optional_string("fmt").value_or("e4m3"), "e4m3");
  const json* block = reader.find("weight_block_size");
  require("weight_block_size", block != nullptr ? *block : json(), json::array({kScaleBlock, kScaleBlock}));
  return true;
}

void read_sizes(const JsonReader& reader, ModelConfig& config) {
  config.vocab_size = reader.integer("vocab_size", 1, Largest::vocab);
  config.hidden_size = reader.integer("hidden_size", 1, Largest::hidden);
  config.intermediate_size = reader.optional_integer("intermediate_size", 0, Largest::intermediate).value_or(0);
  config.layers = reader.integer("num_hidden_layers", 1, Largest::layers);
  config.heads = reader.integer("num_attention_heads", 1, Largest::heads);
  config.kv_heads = reader.optional_integer("num_key_value_heads", 1, Largest::heads).value_or(config.heads);
  if (config.kv_heads > config.heads) {
    reader.refuse("num_key_value_heads", fmt::format("at most num_attention_heads, {}", config.heads));
  }
  config.max_positions = reader.integer("max_position_embeddings", 1, Largest::positions);
  if (const auto head_dim = reader.optional_integer("head_dim", 1, Largest::head_dim)) {
    config.head_dim = *head_dim;
  } else {
    if (config.hidden_size % config.heads != 0) {
      reader.refuse("head_dim", fmt::format("an integer, as hidden_size {} is not a multiple of num_attention_heads {}",
                                            config.hidden_size, config.heads));
    }
    config.head_dim = config.hidden_size / config.heads;
  }
  if (config.heads * config.head_dim > Largest::heads_times_head_dim) {
    reader.refuse("num_attention_heads", fmt::format("at most {} of head_dim {}",
                                                     Largest::heads_times_head_dim / config.head_dim, config.head_dim));
  }
}

ModelConfig model_config_of(json file_json, const std::filesystem::path& file) {
  ModelConfig config;
  config.file = file;
  config.json = decoder_part(std::move(file_json), file.string());
  const JsonReader reader(config.json, file.string());
  const auto model_type = reader.optional_string("model_type");
  if (!model_type) reader.refuse("model_type", "a string");
  config.model_type = *model_type;
  config.architectures = reader.strings("architectures");
  read_sizes(reader, config);
  config.rms_norm_eps = reader.optional_number("rms_norm_eps", 0, 1, false).value_or(config.rms_norm_eps);
  config.hidden_act = reader.optional_string("hidden_act").value_or(config.hidden_act);
  config.tie_word_embeddings = reader.optional_boolean("tie_word_embeddings").value_or(false);
  config.rope = read_rope(reader, file.string());
  config.fp8_weights = read_quantization(reader, file.string());
  config.eos_tokens = reader.token_ids("eos_token_id");
  config.bos_token = reader.optional_integer("bos_token_id", 0, kMaxConfigInteger);
  return config;
}

}  // namespace

std::int64_t ModelConfig::integer(const char* key, std::int64_t minimum) const {
  return JsonReader(json, file.string()).integer(key, minimum, kMaxConfigInteger);
}

std::int64_t ModelConfig::integer_or(const char* key, std::int64_t fallback, std::int64_t minimum) const {
  return JsonReader(json, file.string()).optional_integer(key, minimum, kMaxConfigInteger).value_or(fallback);
}

bool ModelConfig::boolean_or(const char* key, bool fallback) const {
  return JsonReader(json, file.string()).optional_boolean(key).value_or(fallback);
}

ModelConfig load_model_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  return model_config_of(read_json_file(file, kConfigLimits), file);
}

ModelConfig parse_model_config(const std::string& text, const std::filesystem::path& file) {
  return model_config_of(parse_json(text, file.string(), kConfigLimits), file);
}

}  // namespace qpn8
