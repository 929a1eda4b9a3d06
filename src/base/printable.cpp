#include "base/printable.hpp"

#include <fmt/format.h>

#include <iterator>

#include "base/utf8.hpp"

namespace qpn8 {
namespace {

/// Whether a terminal or a log would take the character for more than a character: C0, DEL, C1 and the separators that
/// end a line.
bool is_control(char32_t value) {
  return value < 0x20 || (value >= 0x7f && value <= 0x9f) || value == 0x2028 || value == 0x2029;
}

template <class Append>
void for_each_character(std::string_view text, std::size_t limit, const Append& append) {
  const bool cut = text.size() > limit;
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Sequence sequence = first_sequence(text.substr(at));
    if (at + sequence.size > limit) break;
    const std::string_view bytes = text.substr(at, sequence.size);
    append(bytes, sequence.kind == Utf8Sequence::Kind::complete && !is_control(code_point_at(bytes, 0).value));
    at += sequence.size;
  }
  if (cut) append("...", true);
}

void append_escaped(std::string& result, std::string_view bytes) {
  for (const char c : bytes) fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  for_each_character(text, limit, [&](std::string_view bytes, bool as_it_is) {
    if (as_it_is) {
      result += bytes;
    } else {
      append_escaped(result, bytes);
    }
  });
  return result;
}

std::string in_quotes(std::string_view text, std::size_t limit) {
  std::string result = "\"";
  for_each_character(text, limit, [&](std::string_view bytes, bool as_it_is) {
    if (!as_it_is) return append_escaped(result, bytes);
    if (bytes == "\"" || bytes == "\\") result += '\\';
    result += bytes;
  });
  return result + '"';
}

}  // namespace qpn8
