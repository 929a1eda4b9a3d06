#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace qpn8 {

/// Rotary embedding as configured, from `rope_parameters` or the older `rope_theta` and `rope_scaling`; a config that
/// has both must say the same in both.
struct RopeConfig {
  /// "default", "linear", "llama3", "yarn", ...; the model rejects what it cannot do. "nested" where rope_parameters
  /// holds an object for each kind of layer; they are in `parameters`.
  std::string type = "default";
  double theta = 10000.0;
  double partial_rotary_factor = 1.0;
  nlohmann::json parameters = nlohmann::json::object();  ///< the rest: factor, original_max_position_embeddings, ...
};

/// config.json as the decoders read it. Sizes are checked to be positive and plausible before anything uses them.
/// Keys of one architecture alone stay in `json`; its file in src/model reads them with the accessors below.
struct ModelConfig {
  std::filesystem::path file;  ///< for messages
  std::string model_type;
  std::vector<std::string> architectures;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;  ///< 0 if the config has none
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  ///< hidden_size / heads where the config has none
  std::int64_t max_positions = 0;
  double rms_norm_eps = 1e-6;
  std::string hidden_act = "silu";
  bool tie_word_embeddings = false;
  RopeConfig rope;
  /// quantization_config: projections are FP8 E4M3 with a scale a block of 128 x 128. Any other quantisation is
  /// Error::unsupported. False says nothing about a checkpoint's tensors, which may be FP8 without it.
  bool fp8_weights = false;
  std::vector<std::int64_t> eos_tokens;  ///< config.json's; generation_config.json overrides
  std::optional<std::int64_t> bos_token;
  /// The whole file; where it nests the decoder in text_config, that and what only the file around it has.
  nlohmann::json json;

  /// json[key] as an integer >= minimum and < 2^31; Error::bad_file "config.json: KEY is ..., expected ..." otherwise.
  /// In the accessors with a fallback, an absent key and null give the fallback.
  std::int64_t integer(const char* key, std::int64_t minimum) const;
  std::int64_t integer_or(const char* key, std::int64_t fallback, std::int64_t minimum) const;
  bool boolean_or(const char* key, bool fallback) const;
};

/// Reads DIR/config.json. Accepts `dtype` and `torch_dtype`, a null num_key_value_heads, and configs that nest the
/// decoder in `text_config`. Error::bad_file, or unsupported for a quantisation, names the file and the key.
ModelConfig load_model_config(const std::filesystem::path& folder);

/// The same from text; `file` is for messages.
ModelConfig parse_model_config(const std::string& text, const std::filesystem::path& file);

/// generation_config.json: what the publisher suggests; all optional, and an absent file is an empty struct (a link
/// to nowhere is not: it is Error::bad_file).
struct GenerationConfig {
  std::vector<std::int64_t> eos_tokens;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<std::int64_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<bool> do_sample;
};

/// Reads DIR/generation_config.json; a null member counts as absent. Error::bad_file names the file and the key.
GenerationConfig load_generation_config(const std::filesystem::path& folder);

/// The same from text; `file` is for messages.
GenerationConfig parse_generation_config(const std::string& text, const std::filesystem::path& file);

}  // namespace qpn8
