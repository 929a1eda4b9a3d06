#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/jinja/template.hpp"

// Whatever bytes a checkpoint brings as its template, rendering ends in a text or an error, within the limits.

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const qpn8::jinja::Template compiled({reinterpret_cast<const char*>(data), size}, limits());
    compiled.render(variables(), limits());
  } catch (const qpn8::jinja::TemplateError&) {
    return 0;
  }
  return 0;
}
