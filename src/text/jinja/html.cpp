#include "text/jinja/html.hpp"

#include <fmt/format.h>

#include <array>

#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

struct Reference {
  std::string_view name;
  char character;
};
constexpr std::array<Reference, 7> kReferences = {
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&#34;", '"'}, {"&#39;", '\''}, {"&quot;", '"'}, {"&apos;", '\''}}};
constexpr std::size_t kWritten = 5;  // the first ones are what escaping writes

std::string resolve_references(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const Reference* match = nullptr;
    if (text[i] == '&') {
      for (const Reference& reference : kReferences) {
        if (text.substr(i, reference.name.size()) == reference.name) match = &reference;
      }
    }
    out += match == nullptr ? text[i] : match->character;
    i += match == nullptr ? 1 : match->name.size();
  }
  return out;
}

std::string collapse_spaces(std::string_view text) {
  std::string out;
  bool pending = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    if (is_space(next_code_point(text, i))) {
      pending = !out.empty();
      continue;
    }
    if (pending) out += ' ';
    pending = false;
    out += text.substr(start, i - start);
  }
  return out;
}

}  // namespace

std::string escape_html(Budget& budget, std::string_view text) {
  budget.work_characters(text.size());
  TextBuilder out(budget);
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (std::size_t r = 0; r < kWritten; ++r) {
      if (text[i] != kReferences[r].character) continue;
      out.append(text.substr(plain, i - plain));
      out.append(kReferences[r].name);
      plain = i + 1;
    }
  }
  out.append(text.substr(plain));
  return out.take();
}

std::string escape_value(Budget& budget, const Value& value) {
  const Text* text = value.text();
  if (text != nullptr && text->markup) return text->bytes;
  return escape_html(budget, to_str(budget, value));
}

std::string strip_tags(Budget& budget, std::string_view text) {
  budget.work_characters(text.size());
  std::string out;
  std::size_t position = 0;
  while (position < text.size()) {
    const std::size_t start = text.find('<', position);
    if (start == std::string_view::npos) break;
    const bool comment = text.substr(start, 4) == "<!--";
    const std::size_t end = comment ? find(text, "-->", start + 4) : text.find('>', start);
    if (end == std::string_view::npos) break;
    out += text.substr(position, start - position);
    position = end + (comment ? 3 : 1);
  }
  out += text.substr(position);
  return resolve_references(collapse_spaces(out));
}

std::string quote_url(Budget& budget, std::string_view text, bool query) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~";
  budget.work_characters(text.size());
  TextBuilder out(budget);
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos || (c == '/' && !query)) {
      out.append(1, c);
    } else if (c == ' ' && query) {
      out.append("+");
    } else {
      out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)));
    }
  }
  return out.take();
}

}  // namespace qpn8::jinja
