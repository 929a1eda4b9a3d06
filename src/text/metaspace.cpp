#include "text/metaspace.hpp"

#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace qpn8::text {

Metaspace Metaspace::parse(const JsonView& view) {
  Metaspace metaspace;
  const JsonView replacement = view["replacement"];
  metaspace.replacement = replacement.text();
  if (metaspace.replacement.empty() || code_point_at(metaspace.replacement, 0).size != metaspace.replacement.size()) {
    replacement.fail("is " + in_quotes(metaspace.replacement) + "; one character is needed");
  }
  const bool add_prefix_space = view["add_prefix_space"].flag_or(true);
  const JsonView scheme = view["prepend_scheme"];
  const std::string name = scheme.text_or(add_prefix_space ? "always" : "never");
  if (name == "always") {
    metaspace.prepend = Prepend::always;
  } else if (name == "first") {
    metaspace.prepend = Prepend::first;
  } else if (name == "never") {
    metaspace.prepend = Prepend::never;
  } else {
    scheme.fail("is " + in_quotes(name) + R"(; "always", "first" or "never" is needed)");
  }
  if (!add_prefix_space && metaspace.prepend != Prepend::never) {
    scheme.fail("is " + in_quotes(name) + ", which contradicts add_prefix_space = false");
  }
  return metaspace;
}

}  // namespace qpn8::text
