#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/lexer.hpp"

namespace qpn8::jinja {

/// The tokens of a template with a position.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& look() const { return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_]; }
  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at(std::string_view symbol) const { return current().is(symbol); }
  bool at_name(std::string_view name) const { return current().is_name(name); }

  /// The current token; moves to the next one.
  const Token& take() {
    const Token& token = tokens_[position_];
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  bool skip(std::string_view symbol) { return at(symbol) && (take(), true); }
  bool skip_name(std::string_view name) { return at_name(name) && (take(), true); }

  /// LocatedError unless the current token is what is expected.
  void expect(std::string_view symbol) { at(symbol) ? void(take()) : fail_expected(symbol); }
  void expect_name(std::string_view name) { at_name(name) ? void(take()) : fail_expected(name); }
  const Token& expect(TokenKind kind) {
    if (!at(kind)) fail_expected(Token{kind, "name", 0}.description());
    return take();
  }

  [[noreturn]] void fail(const std::string& message) const { throw LocatedError(message, current().line); }
  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
};

}  // namespace qpn8::jinja
