#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "text/jinja/object.hpp"

namespace qpn8::jinja {

/// A filter: `input | NAME(arguments)`.
using FilterFunction = Value (*)(Runtime& runtime, const Value& input, const Arguments& arguments);

/// Whether there is a filter of that name.
bool has_filter(std::string_view name);

/// Applies a filter; TemplateError "No filter named 'x'." for one that does not exist.
Value apply_filter(Runtime& runtime, std::string_view name, const Value& input, const Arguments& arguments);

// The filters by subject, in one file each; nullptr for a name that is not among them.

FilterFunction find_text_filter(std::string_view name);
FilterFunction find_number_filter(std::string_view name);
FilterFunction find_sequence_filter(std::string_view name);
FilterFunction find_selection_filter(std::string_view name);
FilterFunction find_ordering_filter(std::string_view name);

/// json.dumps as Hugging Face's tojson calls it.
Value tojson(Runtime& runtime, const Value& input, const Arguments& arguments);

struct NamedFilter {
  std::string_view name;
  FilterFunction function;
};

template <std::size_t n>
FilterFunction find_in(const std::array<NamedFilter, n>& table, std::string_view name) {
  const auto* found =
      std::find_if(table.begin(), table.end(), [name](const NamedFilter& filter) { return filter.name == name; });
  return found == table.end() ? nullptr : found->function;
}

/// A path of attributes and indices ("name", "address.city", "0.x", 1), as |map(attribute=...) and its like take it.
/// An undefined item on the way becomes `otherwise` where that is given.
Value get_path(Runtime& runtime, const Value& item, const Value& path, const Value* otherwise = nullptr);

/// A text in lower case, anything else as it is: what comparisons that ignore case look at.
Value lower_if_text(Runtime& runtime, const Value& value);

}  // namespace qpn8::jinja
