#include "text/regex_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/printable.hpp"
#include "qpn8/error.hpp"
#include "text/regex.hpp"

namespace qpn8::text {
namespace {

constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
/// Outside of a class Oniguruma's \w also matches the superscript digits and fractions of Latin-1.
constexpr std::string_view kLoneWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::string_view kHexDigit = "0-9A-Fa-f";

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool is_ascii_alphanumeric(char c) { return is_ascii_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex_digit(char c) { return is_ascii_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Whether PCRE2 knows a script of this name; without "sc:" it would take the name for the script's extensions.
bool is_script(std::string_view name) { return compiles("\\p{sc:" + std::string(name) + "}"); }

/// Bracket classes such as [:alpha:], where both engines have them but mean different characters.
struct PosixClass {
  std::string_view name;
  std::string_view translation;
};
constexpr auto kPosixClasses = std::to_array<PosixClass>({
    {"alpha", R"(\p{Alphabetic})"},
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"digit", R"(\p{Nd})"},
    {"lower", R"(\p{Lowercase})"},
    {"punct", R"(\p{P}\p{S})"},
    {"space", R"(\p{White_Space})"},
    {"upper", R"(\p{Uppercase})"},
    {"xdigit", kHexDigit},
});

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& place) : pattern_(pattern), place_(place) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (peek() == '\\') {
        escape();
      } else if (in_class_) {
        class_item();
      } else {
        item();
      }
    }
    return out_;
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  bool follows(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  void copy(std::size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += std::min(count, pattern_.size() - at_);
  }

  void replace(std::size_t count, std::string_view with) {
    out_ += with;
    at_ += count;
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(Error::unsupported, fmt::format("{}: {} at offset {} of the regular expression {} is not supported",
                                                place_, what, at_, in_quotes(pattern_)));
  }

  void escape();
  void property();
  void item();
  void group();
  void interval();
  void open_class();
  void class_item();
  void posix_class();

  std::string_view pattern_;
  const std::string& place_;
  std::string out_;
  std::size_t at_ = 0;
  bool in_class_ = false;
};

void Translator::escape() {
  const char letter = peek(1);
  const auto set = [&](std::string_view members) {
    replace(2, in_class_ ? std::string(members) : fmt::format("[{}]", members));
  };
  const auto complement = [&](std::string_view members) {
    if (in_class_) refuse(fmt::format("\\{} inside a character class", letter));
    replace(2, fmt::format("[^{}]", members));
  };
  switch (letter) {
    case 's':
      return replace(2, R"(\p{White_Space})");
    case 'S':
      return replace(2, R"(\P{White_Space})");
    case 'w':
      return set(in_class_ ? kWord : kLoneWord);
    case 'W':
      return complement(kLoneWord);
    case 'h':
      return set(kHexDigit);
    case 'H':
      return complement(kHexDigit);
    case 'v':
      return replace(2, R"(\x0b)");
    case 'p':
    case 'P':
      return property();
    case 'u':
      if (!is_hex_digit(peek(2)) || !is_hex_digit(peek(3)) || !is_hex_digit(peek(4)) || !is_hex_digit(peek(5))) {
        refuse("\\u without four hexadecimal digits");
      }
      return replace(6, fmt::format("\\x{{{}}}", pattern_.substr(at_ + 2, 4)));
    default:
      break;
  }
  constexpr std::string_view kSame = "aefnrtdDxAzZ";  // these mean the same to both engines
  const bool same = !is_ascii_alphanumeric(letter) || is_ascii_digit(letter) ||
                    kSame.find(letter) != std::string_view::npos || (letter == 'b' && in_class_);
  if (!same) refuse(fmt::format("\\{}", letter));
  copy(2);
}

void Translator::property() {
  const std::size_t close = pattern_.find('}', at_);
  if (peek(2) != '{' || close == std::string_view::npos) refuse("a property without braces");
  const std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
  const std::string_view plain = name.starts_with('^') ? name.substr(1) : name;
  const bool script =
      std::all_of(plain.begin(), plain.end(), [](char c) { return is_ascii_alphanumeric(c) || c == '_'; }) &&
      is_script(plain);
  if (!script) return copy(close + 1 - at_);
  const bool negated = (peek(1) == 'P') != name.starts_with('^');
  replace(close + 1 - at_, fmt::format("\\{}{{sc:{}}}", negated ? 'P' : 'p', plain));
}

void Translator::item() {
  switch (peek()) {
    case '(':
      return group();
    case '[':
      return open_class();
    case '{':
      return interval();
    default:
      return copy(1);
  }
}

void Translator::group() {
  if (follows("(*")) refuse("(*");
  if (!follows("(?")) return copy(1);
  constexpr std::string_view kSame = ":=!><#";
  if (kSame.find(peek(2)) != std::string_view::npos) return copy(3);
  const std::size_t end = pattern_.find_first_not_of("imx-", at_ + 2);
  if (end == std::string_view::npos || (pattern_[end] != ':' && pattern_[end] != ')')) {
    refuse(fmt::format("(?{}", peek(2)));
  }
  // Ruby's option m lets the dot match a line feed, which is s elsewhere.
  std::string options(pattern_.substr(at_, end - at_));
  std::replace(options.begin(), options.end(), 'm', 's');
  replace(end - at_, options);
}

void Translator::interval() {
  const std::size_t close = pattern_.find_first_not_of("0123456789,", at_ + 1);
  if (close == std::string_view::npos || pattern_[close] != '}' || close == at_ + 1) return copy(1);
  const std::string_view bounds = pattern_.substr(at_ + 1, close - at_ - 1);
  const char next = peek(close + 1 - at_);
  // Ruby reads {1,3}+ as (...{1,3})+ and {3}? as (...{3})?; PCRE2 as possessive and lazy.
  if (next == '+' || (next == '?' && bounds.find(',') == std::string_view::npos)) {
    refuse(fmt::format("{{{}}}{}", bounds, next));
  }
  replace(close + 1 - at_, fmt::format("{{{}{}}}", bounds.starts_with(',') ? "0" : "", bounds));
}

void Translator::open_class() {
  in_class_ = true;
  copy(peek(1) == '^' ? 2 : 1);
  if (peek() == ']') replace(1, "\\]");
}

void Translator::class_item() {
  if (follows("[:")) return posix_class();
  if (peek() == '[') refuse("a character class inside another");
  if (follows("&&")) refuse("an intersection of character classes");
  if (peek() == ']') in_class_ = false;
  copy(1);
}

void Translator::posix_class() {
  const std::size_t end = pattern_.find(":]", at_ + 2);
  if (end == std::string_view::npos) refuse("a character class inside another");
  const std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
  const auto* const known =
      std::find_if(kPosixClasses.begin(), kPosixClasses.end(), [&](const PosixClass& c) { return c.name == name; });
  if (known == kPosixClasses.end()) refuse(fmt::format("[:{}:]", name));
  replace(end + 2 - at_, known->translation);
}

}  // namespace

std::string translate_regex(std::string_view pattern, const std::string& place) {
  return Translator(pattern, place).run();
}

}  // namespace qpn8::text
