#include "text/chat_template.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string_view>

#include "qpn8/error.hpp"
#include "text/jinja/template.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> read_file(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) throw Error(Error::bad_file, fmt::format("{}: cannot be read", path.string()));
  return text;
}

// An object, or nothing if there is no such file.
std::optional<Json> read_json(const std::filesystem::path& path) {
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) throw Error(Error::bad_file, fmt::format("{}: is not a JSON object", path.string()));
  return json;
}

// The text of chat_template, or that of its entry {"name": "default", "template": ...}.
std::optional<std::string> template_text(const Json& config, const std::string& file) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array()) {
    for (const Json& entry : *found) {
      if (entry.is_object() && entry.value("name", Json()) == "default" &&
          entry.value("template", Json()).is_string()) {
        return entry["template"].get<std::string>();
      }
    }
  }
  throw Error(Error::bad_file,
              fmt::format("{}: chat_template is neither a text nor a list with a template named \"default\"", file));
}

// A token is a text, or an object whose content is.
std::optional<std::string> token_text(const Json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.value("content", Json()).is_string()) return token["content"].get<std::string>();
  return std::nullopt;
}

template <class Function>
auto located(const std::string& name, Function function) {
  try {
    return function();
  } catch (const jinja::LocatedError& error) {
    throw Error(Error::bad_value, fmt::format("{}:{}: {}", name, error.line(), error.what()));
  }
}

}  // namespace

class ChatTemplate::Impl {
 public:
  Impl(const std::string& source, std::string name)
      : name_(std::move(name)), template_(located(name_, [&] { return jinja::Template(source); })) {}

  std::string render(const Json& variables) const {
    return located(name_, [&] { return template_.render(variables); });
  }

 private:
  std::string name_;
  jinja::Template template_;
};

ChatTemplate::ChatTemplate(std::string source, std::string name)
    : impl_(std::make_unique<Impl>(source, std::move(name))) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const nlohmann::ordered_json& variables) const { return impl_->render(variables); }

std::optional<ChatTemplate> load_chat_template(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "chat_template.jinja";
  if (const auto text = read_file(file)) return ChatTemplate(*text, file.string());
  const std::filesystem::path config_file = folder / "tokenizer_config.json";
  const auto config = read_json(config_file);
  if (!config) return std::nullopt;
  const auto text = template_text(*config, config_file.string());
  if (!text) return std::nullopt;
  return ChatTemplate(*text, config_file.string() + ": chat_template");
}

nlohmann::ordered_json load_template_tokens(const std::filesystem::path& folder) {
  constexpr std::array<const char*, 7> kTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                  "pad_token", "cls_token", "mask_token"};
  Json tokens = Json::object();
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto config = read_json(folder / file);
    if (!config) continue;
    for (const char* token : kTokens) {
      const auto found = config->find(token);
      if (found == config->end() || tokens.contains(token)) continue;
      if (const auto text = token_text(*found)) tokens[token] = *text;
    }
  }
  return tokens;
}

}  // namespace qpn8
