#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/model_config.hpp"
#include "engine/engine_options.hpp"
#include "engine/generation_request.hpp"
#include "engine/route_planner.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {

/// All of a model that needs no weights: its config, its tokenizer and template, the rules of its routes, and the
/// limits that they set a request. What options, prompt or request get wrong is found here, before minutes of loading.
/// Movable; const calls are thread-safe.
class FrontEnd {
 public:
  /// Reads the configs, the tokenizer if there is one, and the contracts. Error::missing_capability if the device is
  /// not there, Error::bad_argument if the options ask for more than the model or this build has, and errors as the
  /// parts document them.
  FrontEnd(std::filesystem::path folder, const EngineOptions& options);

  const std::filesystem::path& folder() const { return folder_; }
  const EngineOptions& options() const { return options_; }
  const Hardware& hardware() const { return hardware_; }
  const ModelConfig& config() const { return config_; }
  const RouteRules& rules() const { return rules_; }
  std::int64_t context_length() const { return context_length_; }
  std::span<const TokenId> end_tokens() const { return end_tokens_; }
  RequestLimits limits() const;

  bool has_tokenizer() const { return tokenizer_.has_value(); }
  const Tokenizer& tokenizer() const;  ///< Error::bad_file if the folder has none

  /// The folder's chat template, compiled anew by each call; nothing if it has none.
  std::optional<ChatTemplate> chat_template() const;

  /// As Engine documents them.
  std::vector<TokenId> encode_chat(const nlohmann::ordered_json& variables) const;
  std::vector<TokenId> encode_prompt(std::string_view text) const;

 private:
  std::filesystem::path folder_;
  EngineOptions options_;
  Hardware hardware_;
  ModelConfig config_;
  std::int64_t context_length_;
  std::vector<TokenId> end_tokens_;
  RouteRules rules_;
  std::optional<Tokenizer> tokenizer_;
};

/// Tokens a sequence: `max_model_len`, or the config's positions if that is 0. Error::bad_argument if it is more than
/// the model has positions for, or if neither says.
std::int64_t context_length(const ModelConfig& config, std::int64_t max_model_len);

/// The ids that end an output: generation_config.json's, or config.json's if it has none. Error::bad_file names the
/// file and an id outside the vocabulary.
std::vector<TokenId> end_tokens(const ModelConfig& config, const GenerationConfig& generation,
                                const std::filesystem::path& folder);

}  // namespace qpn8
