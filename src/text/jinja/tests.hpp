#pragma once

#include <string_view>

#include "text/jinja/object.hpp"

namespace qpn8::jinja {

/// Whether there is a test (`x is NAME`) of that name.
bool has_test(std::string_view name);

/// Applies a test; TemplateError "No test named 'x'." for one that does not exist.
bool apply_test(Runtime& runtime, std::string_view name, const Value& subject, const Arguments& arguments);

}  // namespace qpn8::jinja
