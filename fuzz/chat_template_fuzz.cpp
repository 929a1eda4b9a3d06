#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "qpn8/error.hpp"
#include "text/jinja/template.hpp"
#include "text/template_config.hpp"

// Whatever bytes a checkpoint brings as its template, rendering ends in a text or an error, within the limits; and so
// it is with the bytes that it brings as its tokenizer_config.json, and the template and tokens in it.

namespace {

qpn8::jinja::Limits limits() {
  qpn8::jinja::Limits limits;
  limits.work = 50'000;
  limits.memory = std::int64_t{16} << 20U;
  limits.text = std::int64_t{1} << 20U;
  return limits;
}

const nlohmann::ordered_json& variables() {
  static const nlohmann::ordered_json object = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "H\u00e9llo <b>\ud83d\ude00"},
                 {"role": "assistant", "content": null, "tool_calls": [{"id": "x", "function": {"name": "f", "arguments":
                 {"a": [1, 2.5, true]}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "n": 7})");
  return object;
}

void render(std::string_view source, const nlohmann::ordered_json& given) {
  try {
    const qpn8::jinja::Template compiled(source, limits());
    compiled.render(given, limits());
  } catch (const qpn8::jinja::TemplateError&) {
    return;
  }
}

void read_config(std::string_view text) {
  try {
    const qpn8::TemplateConfig config = qpn8::parse_template_config(text, "tokenizer_config.json");
    for (const auto& [name, token] : config.tokens.items()) qpn8::check(token.is_string(), "tokens are texts");
    nlohmann::ordered_json given = variables();
    given.update(config.tokens);
    if (config.chat_template) render(*config.chat_template, given);
  } catch (const qpn8::Error& error) {
    qpn8::check(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error is one line");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  render(bytes, variables());
  read_config(bytes);
  return 0;
}
