#include "text/jinja/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/repr.hpp"
#include "text/jinja/string_literal.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

// Longest first.
constexpr std::array<std::string_view, 26> kSymbols = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                       "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                       ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) text_and_tag();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  // --- text -------------------------------------------------------------------------------------------------------

  // The next {{, {% or {#, the text in front of it, and what is inside.
  void text_and_tag() {
    std::size_t open = position_;
    while (true) {
      open = source_.find('{', open);
      if (open == std::string_view::npos || open + 1 >= source_.size()) {
        add_data(source_.substr(position_));
        advance_to(source_.size());
        return;
      }
      const char kind = source_[open + 1];
      if (kind == '{' || kind == '%' || kind == '#') break;
      ++open;
    }
    const char kind = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    const bool has_sign = sign == '-' || sign == '+';
    add_data(trimmed_before(source_.substr(position_, open - position_), has_sign ? sign : '\0', kind == '{'));
    advance_to(open);
    const std::size_t inside = open + (has_sign ? 3 : 2);
    if (kind == '#') {
      skip_comment(inside);
    } else if (kind == '%' && raw_begin_size(inside) != 0) {
      raw(inside);
    } else {
      tag(kind == '{', inside);
    }
  }

  // The text in front of a tag: `-` takes all white space; otherwise a block's or comment's own indentation goes.
  std::string_view trimmed_before(std::string_view text, char sign, bool variable) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || variable) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_start == 0 && !at_line_start_) return text;
    return strip(text.substr(line_start)).empty() ? text.substr(0, line_start) : text;
  }

  // Moves behind a tag's end at `end`, with the white space that it takes along.
  void after_tag(std::size_t end, char sign, bool trim_newline) {
    if (sign == '-') {
      end = source_.size() - strip_left(source_.substr(end)).size();
    } else if (trim_newline && sign != '+' && end < source_.size() && source_[end] == '\n') {
      ++end;
    }
    at_line_start_ = end > 0 && source_[end - 1] == '\n';
    advance_to(end);
  }

  void skip_comment(std::size_t inside) {
    const std::size_t close = find(source_, "#}", inside);
    if (close == std::string_view::npos) throw LocatedError("Missing end of comment tag", line_);
    // "{#-#}" has its sign only once: as the beginning's.
    const char sign = close > inside ? source_[close - 1] : '\0';
    after_tag(close + 2, sign, true);
  }

  // --- raw --------------------------------------------------------------------------------------------------------

  // The size of `raw %}` with the white space around, or 0.
  std::size_t raw_begin_size(std::size_t inside) const { return keyword_tag_size(inside, "raw", false); }

  std::size_t keyword_tag_size(std::size_t inside, std::string_view keyword, bool plus_allowed) const {
    const std::string_view rest = source_.substr(inside);
    std::string_view text = strip_left(rest);
    if (text.substr(0, keyword.size()) != keyword) return 0;
    text = strip_left(text.substr(keyword.size()));
    if (!text.empty() && (text[0] == '-' || (plus_allowed && text[0] == '+'))) text.remove_prefix(1);
    if (text.substr(0, 2) != "%}") return 0;
    return rest.size() - text.size() + 2;
  }

  void raw(std::size_t inside) {
    const std::size_t body = inside + raw_begin_size(inside);
    after_tag(body, source_[body - 3], false);
    for (std::size_t open = position_;; ++open) {
      open = find(source_, "{%", open);
      if (open == std::string_view::npos) throw LocatedError("Missing end of raw directive", line_);
      const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
      const bool has_sign = sign == '-' || sign == '+';
      const std::size_t end_inside = open + (has_sign ? 3 : 2);
      const std::size_t size = keyword_tag_size(end_inside, "endraw", true);
      if (size == 0) continue;
      add_data(trimmed_before(source_.substr(position_, open - position_), has_sign ? sign : '\0', false));
      advance_to(open);
      after_tag(end_inside + size, source_[end_inside + size - 3], true);
      return;
    }
  }

  // --- tags -------------------------------------------------------------------------------------------------------

  void tag(bool variable, std::size_t inside) {
    add(variable ? TokenKind::variable_begin : TokenKind::block_begin, "");
    position_ = inside;
    std::vector<char> open;
    while (position_ < source_.size()) {
      if (open.empty() && tag_end(variable)) return;
      token(open);
    }
  }

  bool tag_end(bool variable) {
    const char sign = source_[position_];
    const bool has_sign = sign == '-' || (!variable && sign == '+');
    const std::size_t close = position_ + (has_sign ? 1 : 0);
    if (source_.substr(close, 2) != (variable ? "}}" : "%}")) return false;
    add(variable ? TokenKind::variable_end : TokenKind::block_end, "");
    after_tag(close + 2, has_sign ? sign : '\0', !variable);
    return true;
  }

  void token(std::vector<char>& open) {
    const char c = source_[position_];
    std::size_t next = position_;
    const CodePoint code_point = next_code_point(source_, next);
    if (is_space(code_point)) {
      advance_to(next);
    } else if (is_digit(c)) {
      number();
    } else if (is_word(code_point)) {
      word();
    } else if (c == '\'' || c == '"') {
      string(c);
    } else {
      symbol(open);
    }
  }

  // Digits with single underscores between them, from `at`; the position behind.
  std::size_t digits_end(std::size_t at) const {
    while (at < source_.size() && (is_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() &&
                                                             is_digit(source_[at + 1]) && is_digit(source_[at - 1])))) {
      ++at;
    }
    return at;
  }

  // Behind a real number that starts at the position; 0 if none does.
  std::size_t real_end() const {
    if (position_ > 0 && source_[position_ - 1] == '.') return 0;
    const auto at = [&](std::size_t i) { return i < source_.size() ? source_[i] : '\0'; };
    const std::size_t whole = digits_end(position_);
    std::size_t end = whole;
    if (at(end) == '.' && is_digit(at(end + 1))) end = digits_end(end + 1);
    if (at(end) == 'e' || at(end) == 'E') {
      const std::size_t exponent = end + (at(end + 1) == '+' || at(end + 1) == '-' ? 2 : 1);
      if (is_digit(at(exponent))) return digits_end(exponent);
    }
    return end == whole ? 0 : end;
  }

  std::size_t prefixed_end() const {
    constexpr std::string_view kHex = "0123456789abcdefABCDEF";
    if (source_[position_] != '0' || position_ + 1 >= source_.size()) return 0;
    const char prefix = static_cast<char>(source_[position_ + 1] | 0x20);
    const std::size_t digits = prefix == 'b' ? 2 : prefix == 'o' ? 8 : prefix == 'x' ? kHex.size() : 0;
    std::size_t end = position_ + 2;
    while (end < source_.size()) {
      const std::size_t digit = end + (source_[end] == '_' ? 1 : 0);
      if (digit >= source_.size() || kHex.substr(0, digits).find(source_[digit]) == std::string_view::npos) break;
      end = digit + 1;
    }
    return end == position_ + 2 ? 0 : end;
  }

  void number() {
    TokenKind kind = TokenKind::integer;
    std::size_t end = real_end();
    if (end != 0) {
      kind = TokenKind::real;
    } else if (end = prefixed_end(); end == 0) {
      end = digits_end(position_);
      // A number does not start with zeros: "012" is 0 and then 12.
      if (source_[position_] == '0') {
        end = std::min(end, std::min(source_.find_first_not_of("0_", position_), source_.size()));
        while (source_[end - 1] == '_') --end;
      }
    }
    std::string digits(source_.substr(position_, end - position_));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    add(kind, std::move(digits));
    advance_to(end);
  }

  void word() {
    std::size_t end = position_;
    while (end < source_.size()) {
      std::size_t next = end;
      if (!is_word(next_code_point(source_, next))) break;
      end = next;
    }
    std::size_t after_first = position_;
    const CodePoint first = next_code_point(source_, after_first);
    if (first != '_' && !is_letter(first)) throw LocatedError("Invalid character in identifier", line_);
    add(TokenKind::name, std::string(source_.substr(position_, end - position_)));
    advance_to(end);
  }

  void string(char mark) {
    std::size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != mark) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) unexpected();
    add(TokenKind::string, unescape_literal(source_.substr(position_ + 1, end - position_ - 1), line_));
    advance_to(end + 1);
  }

  void symbol(std::vector<char>& open) {
    const std::string_view rest = source_.substr(position_);
    const auto* found = std::find_if(kSymbols.begin(), kSymbols.end(),
                                     [&](std::string_view s) { return rest.substr(0, s.size()) == s; });
    if (found == kSymbols.end()) unexpected();
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) throw LocatedError(fmt::format("unexpected '{}'", c), line_);
      if (open.back() != c) throw LocatedError(fmt::format("unexpected '{}', expected '{}'", c, open.back()), line_);
      open.pop_back();
    }
    add(TokenKind::symbol, std::string(*found));
    advance_to(position_ + found->size());
  }

  [[noreturn]] void unexpected() const {
    std::size_t next = position_;
    next_code_point(source_, next);
    throw LocatedError(fmt::format("unexpected char {} at {}", quote(source_.substr(position_, next - position_)),
                                   count_code_points(source_.substr(0, position_))),
                       line_);
  }

  // --- bookkeeping ------------------------------------------------------------------------------------------------

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::data, std::string(text));
  }

  void advance_to(std::size_t position) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(position_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
    position_ = position;
  }

  std::string_view source_;
  std::size_t position_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string Token::description() const {
  switch (kind) {
    case TokenKind::data:
      return "template data / text";
    case TokenKind::variable_begin:
      return "begin of print statement";
    case TokenKind::variable_end:
      return "end of print statement";
    case TokenKind::block_begin:
      return "begin of statement block";
    case TokenKind::block_end:
      return "end of statement block";
    case TokenKind::string:
      return "string";
    case TokenKind::integer:
      return "integer";
    case TokenKind::real:
      return "float";
    case TokenKind::end:
      return "end of template";
    case TokenKind::name:
    case TokenKind::symbol:
      break;
  }
  return text;
}

std::vector<Token> tokenize(std::string_view source) {
  const std::string normalized = normalize_newlines(source);
  return Lexer(normalized).run();
}

}  // namespace qpn8::jinja
