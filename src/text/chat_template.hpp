#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace qpn8 {

/// A chat template: Jinja as Hugging Face renders it (ImmutableSandboxedEnvironment, trim_blocks and lstrip_blocks on,
/// loop controls, tojson without HTML escapes, raise_exception, strftime_now).
///
/// Whatever the template raises, and whatever it does that Jinja would refuse, is Error::bad_value with the template's
/// message and line: the request fails, and no other prompt is ever sent instead. Rendering is bounded in steps, output
/// and nesting, so that a hostile template ends in an error. Immutable and thread-safe.
class ChatTemplate {
 public:
  /// Compiles; a syntax error is Error::bad_value "NAME:LINE: ...".
  explicit ChatTemplate(const std::string& source, std::string name = "chat template");
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// `variables` is an object: messages, tools, add_generation_prompt, bos_token, eos_token, enable_thinking, ...
  /// The order of its keys is kept (ordered_json), since templates print objects with tojson.
  std::string render(const nlohmann::ordered_json& variables) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The template of a checkpoint's folder: chat_template.jinja, else `chat_template` of tokenizer_config.json (a text,
/// or a list of named ones, of which "default" is taken). Nothing if it has none.
std::optional<ChatTemplate> load_chat_template(const std::filesystem::path& folder);

/// The special tokens that templates refer to (bos_token, eos_token, ...), from tokenizer_config.json or
/// special_tokens_map.json, as an object of texts.
nlohmann::ordered_json load_template_tokens(const std::filesystem::path& folder);

}  // namespace qpn8
