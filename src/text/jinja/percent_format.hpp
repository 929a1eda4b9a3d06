#pragma once

#include "text/jinja/value.hpp"

namespace qpn8::jinja {

/// Python's `format % arguments`: a tuple gives the conversions in order, a dict by name, anything else is the only
/// one.
Value percent_format(Budget& budget, const Text& format, const Value& arguments);

}  // namespace qpn8::jinja
