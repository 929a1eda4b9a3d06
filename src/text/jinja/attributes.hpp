#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/object.hpp"

// Lookups as Jinja's sandbox does them. What is not there, and what the sandbox forbids, is an undefined value; a
// lookup in an undefined value throws.

namespace qpn8::jinja {

/// `value.name`: the attribute or method, else the item.
Value get_attribute(Runtime& runtime, const Value& value, std::string_view name);

/// `value[index]`: the item, else the attribute of that name.
Value get_item(Runtime& runtime, const Value& value, const Value& index);

/// The attribute or method alone; nothing if there is none.
std::optional<Value> find_attribute(Runtime& runtime, const Value& value, std::string_view name);

/// `value[start:stop:step]`; a bound that is None is left out.
Value get_slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step);

/// The message of Jinja for an attribute or item that is not there.
Value missing_attribute(const Value& value, std::string_view name);

}  // namespace qpn8::jinja
