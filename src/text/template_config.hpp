#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace qpn8 {

/// What tokenizer_config.json and special_tokens_map.json say of prompts.
struct TemplateConfig {
  std::optional<std::string> chat_template;  ///< nothing if the file has none
  /// The special tokens that templates refer to (bos_token, eos_token, ...), an object of texts.
  nlohmann::ordered_json tokens = nlohmann::ordered_json::object();
};

/// Reads either file's text. `chat_template` is a text, or a list of named ones, of which "default" is taken; anything
/// else, and a text that is not a JSON object, is Error::bad_file naming `file`.
TemplateConfig parse_template_config(std::string_view text, const std::string& file);

/// The same for a file; nothing if it is not there.
std::optional<TemplateConfig> read_template_config(const std::filesystem::path& file);

}  // namespace qpn8
