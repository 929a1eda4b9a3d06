#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "text/jinja/object.hpp"

namespace qpn8::jinja {

/// A method of str, dict, list or tuple. `self` is a value of that type.
using Method = Value (*)(Runtime& runtime, const Value& self, const Arguments& arguments);

struct NamedMethod {
  std::string_view name;
  Method method;
};

template <std::size_t n>
Method find_in(const std::array<NamedMethod, n>& table, std::string_view name) {
  const auto* found =
      std::find_if(table.begin(), table.end(), [name](const NamedMethod& method) { return method.name == name; });
  return found == table.end() ? nullptr : found->method;
}

/// The method of the value's type, or nullptr.
Method find_method(const Value& value, std::string_view name);

/// Whether Python's method of that name would change the value, which the sandbox forbids.
bool is_mutating_method(const Value& value, std::string_view name);

/// By name, in parts of one file each; nullptr if there is none.
Method find_text_method(std::string_view name);
Method find_text_search_method(std::string_view name);
Method find_text_split_method(std::string_view name);

/// "{} {name}".format(...) with Python's fields.
Value format_fields(Runtime& runtime, const Value& self, const Arguments& arguments);

}  // namespace qpn8::jinja
