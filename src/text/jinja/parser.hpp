#pragma once

#include <string_view>

#include "text/jinja/ast.hpp"

namespace qpn8::jinja {

/// Parses a template, which must be UTF-8. Constants are charged to the budget, which must outlive the tree.
/// LocatedError for what Jinja refuses, for tags of template inheritance (there is only one template), and beyond the
/// bounds of nesting.
Body parse(std::string_view source, Budget& budget);

}  // namespace qpn8::jinja
