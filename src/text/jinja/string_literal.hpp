#pragma once

#include <string>
#include <string_view>

namespace qpn8::jinja {

/// The value of a string literal's inside: Python's escapes resolved. An escape that names no code point is a
/// LocatedError with that line; \N{...} is not supported.
std::string unescape_literal(std::string_view inside, int line);

}  // namespace qpn8::jinja
