#include "text/jinja/string_literal.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "text/jinja/lexer.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

struct SimpleEscape {
  char letter;
  std::string_view value;
};
constexpr std::array<SimpleEscape, 11> kSimpleEscapes = {{{'n', "\n"},
                                                          {'t', "\t"},
                                                          {'r', "\r"},
                                                          {'\\', "\\"},
                                                          {'\'', "'"},
                                                          {'"', "\""},
                                                          {'a', "\a"},
                                                          {'b', "\b"},
                                                          {'f', "\f"},
                                                          {'v', "\v"},
                                                          {'\n', ""}}};

std::optional<int> digit_value(char c, int base) {
  int value = base;
  if (c >= '0' && c <= '9') value = c - '0';
  if (c >= 'a' && c <= 'f') value = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') value = c - 'A' + 10;
  if (value >= base) return std::nullopt;
  return value;
}

// Reads up to `most` digits; `position` moves behind them.
CodePoint read_digits(std::string_view text, std::size_t& position, int base, std::size_t most, std::size_t& count) {
  CodePoint value = 0;
  for (count = 0; count < most && position < text.size(); ++count, ++position) {
    const auto digit = digit_value(text[position], base);
    if (!digit) break;
    value = value > 0x10ffff ? value : value * base + *digit;
  }
  return value;
}

void append_escaped(std::string& out, CodePoint c, int line) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
    throw LocatedError(fmt::format("the escape \\U{:08x} is not a character", c), line);
  }
  append_code_point(out, c);
}

std::size_t hex_digits(char letter) { return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0; }

}  // namespace

std::string unescape_literal(std::string_view inside, int line) {
  std::string out;
  for (std::size_t i = 0; i < inside.size();) {
    if (inside[i] != '\\') {
      out += inside[i++];
      continue;
    }
    const char letter = inside[++i];
    const SimpleEscape* simple = nullptr;
    for (const SimpleEscape& escape : kSimpleEscapes) {
      if (escape.letter == letter) simple = &escape;
    }
    std::size_t count = 0;
    if (simple != nullptr) {
      out += simple->value;
      ++i;
    } else if (const std::size_t wanted = hex_digits(letter); wanted != 0) {
      const CodePoint c = read_digits(inside, ++i, 16, wanted, count);
      if (count < wanted) throw LocatedError(fmt::format("truncated \\{} escape", letter), line);
      append_escaped(out, c, line);
    } else if (letter >= '0' && letter <= '7') {
      append_escaped(out, read_digits(inside, i, 8, 3, count), line);
    } else if (letter == 'N') {
      throw LocatedError("the escape \\N{...} is not supported; \\u with the code point is", line);
    } else {
      out += '\\';
    }
  }
  return out;
}

}  // namespace qpn8::jinja
