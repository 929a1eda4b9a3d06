#include "text/jinja/object.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/operators.hpp"

namespace qpn8::jinja {

std::optional<Value> Object::attribute(Runtime& /*runtime*/, std::string_view /*name*/) { return std::nullopt; }

Value Object::call(Runtime& /*runtime*/, const Arguments& /*arguments*/) {
  throw TemplateError(fmt::format("'{}' object is not callable", type_name()));
}

void Function::append_repr(TextBuilder& out) { out.append(fmt::format("<built-in function {}>", name_)); }

Value call_value(Runtime& runtime, const Value& callee, const Arguments& arguments) {
  require_defined(callee);
  if (Object* object = callee.object()) return object->call(runtime, arguments);
  throw TemplateError(fmt::format("'{}' object is not callable", callee.type_name()));
}

BoundArguments::BoundArguments(std::string_view function, const Arguments& arguments,
                               std::initializer_list<std::string_view> names, std::size_t required)
    : values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size()) {
    throw TemplateError(fmt::format("{}: takes at most {} arguments, {} were given", function, names.size(),
                                    arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw TemplateError(fmt::format("{}: got an unexpected keyword argument '{}'", function, name));
    }
    const Value*& place = values_[static_cast<std::size_t>(found - names.begin())];
    if (place != nullptr) {
      throw TemplateError(fmt::format("{}: got multiple values for argument '{}'", function, name));
    }
    place = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      throw TemplateError(fmt::format("{}: the required argument '{}' is missing", function, *(names.begin() + i)));
    }
  }
}

std::int64_t BoundArguments::integer(std::size_t i, std::int64_t otherwise) const {
  return has(i) ? to_index(*values_[i]) : otherwise;
}

bool BoundArguments::boolean(std::size_t i, bool otherwise) const { return has(i) ? is_true(*values_[i]) : otherwise; }

std::string_view BoundArguments::text(std::size_t i, std::string_view otherwise) const {
  return has(i) ? to_text(*values_[i], "the argument") : otherwise;
}

void refuse_arguments(std::string_view function, const Arguments& arguments) {
  const BoundArguments none(function, arguments, {});
}

std::int64_t to_index(const Value& value) {
  require_defined(value);
  if (const auto integer = value.integer()) return *integer;
  throw TemplateError(fmt::format("'{}' object cannot be interpreted as an integer", value.type_name()));
}

std::string_view to_text(const Value& value, std::string_view what) {
  require_defined(value);
  if (const Text* text = value.text()) return text->bytes;
  throw TemplateError(fmt::format("{} must be str, not {}", what, value.type_name()));
}

}  // namespace qpn8::jinja
