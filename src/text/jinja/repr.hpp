#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.hpp"

namespace qpn8::jinja {

/// Python's str(value), which is what printing gives.
void append_str(TextBuilder& out, const Value& value);
std::string to_str(Budget& budget, const Value& value);

/// Python's repr(value).
void append_repr(TextBuilder& out, const Value& value);
std::string to_repr(Budget& budget, const Value& value);

/// repr of a str: single quotes unless only single ones occur in it, escapes for what cannot be printed.
std::string quote(std::string_view text);

/// repr of a float: the shortest digits that read back as the same number.
std::string format_float(double value);

}  // namespace qpn8::jinja
