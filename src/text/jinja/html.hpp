#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.hpp"

namespace qpn8::jinja {

/// markupsafe.escape on a text: & < > " ' as character references.
std::string escape_html(Budget& budget, std::string_view text);

/// markupsafe.escape(value): Markup stays, everything else is escaped as str prints it.
std::string escape_value(Budget& budget, const Value& value);

/// Tags and comments removed, white space collapsed, character references of the five escapes resolved.
std::string strip_tags(Budget& budget, std::string_view text);

/// urllib.parse.quote; `/` is kept and a space is %20, or, in a query, %2F and +.
std::string quote_url(Budget& budget, std::string_view text, bool query);

}  // namespace qpn8::jinja
