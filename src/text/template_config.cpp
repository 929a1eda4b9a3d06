#include "text/template_config.hpp"

#include <array>

#include "base/directory_entry.hpp"
#include "base/json_file.hpp"
#include "base/json_view.hpp"
#include "base/mapped_file.hpp"

namespace qpn8 {
namespace {

constexpr std::array<const char*, 7> kTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                "pad_token", "cls_token", "mask_token"};

const std::string* text_member(const nlohmann::json& value, const char* key) {
  const auto found = value.is_object() ? value.find(key) : value.end();
  return found != value.end() && found->is_string() ? &found->get_ref<const std::string&>() : nullptr;
}

std::optional<std::string> template_text(const JsonView& view) {
  if (view.is_null()) return std::nullopt;
  if (view.value().is_string()) return view.text();
  if (view.value().is_array()) {
    for (const nlohmann::json& entry : view.value()) {
      const std::string* name = text_member(entry, "name");
      const std::string* text = text_member(entry, "template");
      if (name != nullptr && *name == "default" && text != nullptr) return *text;
    }
  }
  view.refuse("a string, or a list with a template named \"default\"");
}

/// A token is a text, or an object whose content is.
const std::string* token_text(const nlohmann::json& token) {
  return token.is_string() ? &token.get_ref<const std::string&>() : text_member(token, "content");
}

}  // namespace

TemplateConfig parse_template_config(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  const JsonView root(document, file);
  TemplateConfig config;
  config.chat_template = template_text(root["chat_template"]);
  for (const char* token : kTokens) {
    if (const std::string* found = token_text(root[token].value())) config.tokens[token] = *found;
  }
  return config;
}

std::optional<TemplateConfig> read_template_config(const std::filesystem::path& file) {
  if (!entry_exists(file)) return std::nullopt;
  return parse_template_config(MappedFile(file).text(), file.string());
}

}  // namespace qpn8
