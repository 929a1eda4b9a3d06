#include "text/jinja/filters.hpp"

#include <fmt/format.h>

#include <charconv>

#include "text/jinja/attributes.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

FilterFunction find_filter(std::string_view name) {
  if (name == "tojson") return tojson;
  for (const auto find :
       {find_text_filter, find_sequence_filter, find_selection_filter, find_ordering_filter, find_number_filter}) {
    if (const FilterFunction function = find(name)) return function;
  }
  return nullptr;
}

Value path_part(Budget& budget, std::string_view part) {
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool is_index = !part.empty() && part[0] != '-' && error == std::errc() && end == part.data() + part.size();
  return is_index ? Value(index) : make_text(budget, std::string(part));
}

}  // namespace

bool has_filter(std::string_view name) { return find_filter(name) != nullptr; }

Value apply_filter(Runtime& runtime, std::string_view name, const Value& input, const Arguments& arguments) {
  const FilterFunction function = find_filter(name);
  if (function == nullptr) throw TemplateError(fmt::format("No filter named '{}'.", name));
  return function(runtime, input, arguments);
}

Value get_path(Runtime& runtime, const Value& item, const Value& path, const Value* otherwise) {
  const auto step = [&](const Value& from, const Value& part) {
    Value found = get_item(runtime, from, part);
    return found.is_undefined() && otherwise != nullptr ? *otherwise : found;
  };
  if (path.is_none()) return item;
  if (path.text() == nullptr) return step(item, path);
  Value value = item;
  const std::string_view names = path.text()->bytes;
  for (std::size_t start = 0; start <= names.size();) {
    const std::size_t dot = std::min(names.find('.', start), names.size());
    value = step(value, path_part(runtime.budget(), names.substr(start, dot - start)));
    start = dot + 1;
  }
  return value;
}

Value lower_if_text(Runtime& runtime, const Value& value) {
  const Text* text = value.text();
  if (text == nullptr) return value;
  runtime.budget().work_characters(text->bytes.size());
  return make_text(runtime.budget(), to_lower(text->bytes));
}

}  // namespace qpn8::jinja
