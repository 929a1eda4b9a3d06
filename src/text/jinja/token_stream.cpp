#include "text/jinja/token_stream.hpp"

#include <fmt/format.h>

namespace qpn8::jinja {

void TokenStream::fail_expected(std::string_view what) const {
  if (at(TokenKind::end)) fail(fmt::format("unexpected end of template, expected '{}'.", what));
  fail(fmt::format("expected token '{}', got '{}'", what, current().description()));
}

}  // namespace qpn8::jinja
