#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/budget.hpp"

namespace qpn8::jinja {

/// An error that knows its line.
class LocatedError : public TemplateError {
 public:
  LocatedError(const std::string& message, int line) : TemplateError(message), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

enum class TokenKind : std::uint8_t {
  data,  ///< text between tags
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  symbol,  ///< an operator or a delimiter; `text` is it
  end,
};

struct Token {
  TokenKind kind;
  std::string text;  ///< a string's value with its escapes resolved; digits without underscores
  int line;

  bool is(std::string_view symbol) const { return kind == TokenKind::symbol && text == symbol; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
  /// As Jinja's messages describe it.
  std::string description() const;
};

/// Splits a template, which must be UTF-8, as Jinja does with trim_blocks and lstrip_blocks on and
/// keep_trailing_newline off. The last token is of kind end. LocatedError for what no token can be made of.
std::vector<Token> tokenize(std::string_view source);

}  // namespace qpn8::jinja
