#include "text/chat_template.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/directory_entry.hpp"
#include "base/regular_file.hpp"
#include "qpn8/error.hpp"
#include "text/jinja/template.hpp"
#include "text/template_config.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

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

ChatTemplate::ChatTemplate(const std::string& source, std::string name)
    : impl_(std::make_unique<Impl>(source, std::move(name))) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const nlohmann::ordered_json& variables) const { return impl_->render(variables); }

std::optional<ChatTemplate> load_chat_template(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "chat_template.jinja";
  if (entry_exists(file)) return ChatTemplate(read_file(file), file.string());
  const std::filesystem::path config_file = folder / "tokenizer_config.json";
  const auto config = read_template_config(config_file);
  if (!config || !config->chat_template) return std::nullopt;
  return ChatTemplate(*config->chat_template, config_file.string() + ": chat_template");
}

nlohmann::ordered_json load_template_tokens(const std::filesystem::path& folder) {
  Json tokens = Json::object();
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto config = read_template_config(folder / file);
    if (!config) continue;
    for (const auto& [token, text] : config->tokens.items()) {
      if (!tokens.contains(token)) tokens[token] = text;
    }
  }
  return tokens;
}

}  // namespace qpn8
