#include <fmt/format.h>

#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/tests.hpp"

// Filters that apply another filter or a test to each item.

namespace qpn8::jinja {
namespace {

Arguments without_first(const Arguments& arguments, std::size_t count) {
  return {{arguments.positional.begin() + static_cast<std::ptrdiff_t>(count), arguments.positional.end()},
          arguments.keywords};
}

Value map_attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Value* path = nullptr;
  const Value* otherwise = nullptr;
  for (const auto& [name, value] : arguments.keywords) {
    if (name == "attribute") {
      path = &value;
    } else if (name == "default") {
      otherwise = value.is_none() ? nullptr : &value;
    } else {
      throw TemplateError(fmt::format("Unexpected keyword argument '{}'", name));
    }
  }
  if (path == nullptr) throw TemplateError("map requires a filter argument");
  std::vector<Value> out;
  ItemSource source(runtime.budget(), input);
  while (const auto item = source.next()) out.push_back(get_path(runtime, *item, *path, otherwise));
  return make_iterator(runtime.budget(), std::move(out));
}

Value map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!is_true(input)) return make_iterator(runtime.budget(), {});
  if (arguments.positional.empty()) return map_attribute(runtime, input, arguments);
  const std::string_view filter = to_text(arguments.positional[0], "a filter's name");
  const Arguments rest = without_first(arguments, 1);
  std::vector<Value> out;
  ItemSource source(runtime.budget(), input);
  while (const auto item = source.next()) {
    const Nesting nesting(runtime.budget());
    out.push_back(apply_filter(runtime, filter, *item, rest));
  }
  return make_iterator(runtime.budget(), std::move(out));
}

// The items for which the test (or, without one, the item itself) is true, or those for which it is not; with
// `by_attribute` it looks at an attribute of the item, which the first argument names.
template <bool keep, bool by_attribute>
Value select(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!is_true(input)) return make_iterator(runtime.budget(), {});
  constexpr std::size_t kTest = by_attribute ? 1 : 0;
  const std::vector<Value>& given = arguments.positional;
  if (by_attribute && given.empty()) throw TemplateError("Missing parameter for attribute name");
  const bool has_test = given.size() > kTest;
  const std::string_view test = has_test ? to_text(given[kTest], "a test's name") : "";
  const Arguments rest = has_test ? without_first(arguments, kTest + 1) : Arguments{};
  std::vector<Value> out;
  ItemSource source(runtime.budget(), input);
  while (const auto item = source.next()) {
    const Value subject = by_attribute ? get_path(runtime, *item, given[0]) : *item;
    const bool holds = has_test ? apply_test(runtime, test, subject, rest) : is_true(subject);
    if (holds == keep) out.push_back(*item);
  }
  return make_iterator(runtime.budget(), std::move(out));
}

constexpr std::array<NamedFilter, 5> kSelectionFilters = {{{"map", map},
                                                           {"select", select<true, false>},
                                                           {"reject", select<false, false>},
                                                           {"selectattr", select<true, true>},
                                                           {"rejectattr", select<false, true>}}};

}  // namespace

FilterFunction find_selection_filter(std::string_view name) { return find_in(kSelectionFilters, name); }

}  // namespace qpn8::jinja
