#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/attributes.hpp"
#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"

// Filters on sequences as a whole, and on values of any type.

namespace qpn8::jinja {
namespace {

Value attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'attr'", arguments, {"name"}, 1);
  const std::string_view name = to_text(bound[0], "attribute name");
  if (auto found = find_attribute(runtime, input, name)) return *found;
  // Not get_attribute: a dict's item of that name is no attribute.
  return input.dict() != nullptr ? missing_attribute(input, name) : get_attribute(runtime, input, name);
}

Value otherwise(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'default'", arguments, {"default_value", "boolean"});
  if (!input.is_undefined() && (!bound.boolean(1, false) || is_true(input))) return input;
  return bound.has(0) ? bound[0] : make_text(runtime.budget(), "");
}

Value length(Runtime& /*runtime*/, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'length'", arguments);
  return length_of(input);
}

Value list(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'list'", arguments);
  return make_list(runtime.budget(), items_of(runtime.budget(), input));
}

Value items(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'items'", arguments);
  if (input.is_undefined()) return make_iterator(runtime.budget(), {});
  if (input.dict() == nullptr) throw TemplateError("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : input.dict()->entries()) pairs.push_back(make_tuple(runtime.budget(), {key, value}));
  return make_iterator(runtime.budget(), std::move(pairs));
}

Value first(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'first'", arguments);
  ItemSource source(runtime.budget(), input);
  if (auto item = source.next()) return *item;
  return make_undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'last'", arguments);
  if (input.iterator() != nullptr || !is_iterable(input)) {
    throw TemplateError(fmt::format("'{}' object is not reversible", input.type_name()));
  }
  if (length_of(input) == 0) return make_undefined("No last item, sequence was empty.");
  if (const Dict* dict = input.dict()) return dict->entries().back().key;
  if (const Sequence* sequence = input.sequence()) return sequence->items.back();
  return get_item(runtime, input, -1);
}

Value join(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'join'", arguments, {"d", "attribute"});
  Budget& budget = runtime.budget();
  const std::string separator = bound.has(0) ? to_str(budget, bound[0]) : "";
  TextBuilder out(budget);
  ItemSource source(budget, input);
  for (bool is_first = true; const auto item = source.next(); is_first = false) {
    if (!is_first) out.append(separator);
    append_str(out, bound.optional(1) == nullptr ? *item : get_path(runtime, *item, bound[1]));
  }
  return make_text(std::move(out));
}

Value reverse(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'reverse'", arguments);
  Budget& budget = runtime.budget();
  if (input.text() != nullptr) return get_slice(budget, input, Value(), Value(), -1);
  if (!is_iterable(input)) throw TemplateError("argument must be iterable");
  std::vector<Value> reversed = items_of(budget, input);
  std::reverse(reversed.begin(), reversed.end());
  // Python's reversed() takes no generator, so that Jinja makes a list of one.
  if (input.iterator() != nullptr) return make_list(budget, std::move(reversed));
  return make_iterator(budget, std::move(reversed), "list_reverseiterator");
}

Value batch(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'batch'", arguments, {"linecount", "fill_with"}, 1);
  Budget& budget = runtime.budget();
  const std::int64_t size = to_index(bound[0]);
  std::vector<Value> batches;
  std::vector<Value> current;
  ItemSource source(budget, input);
  while (auto item = source.next()) {
    if (static_cast<std::int64_t>(current.size()) == size) {
      batches.push_back(make_list(budget, std::exchange(current, {})));
    }
    current.push_back(std::move(*item));
  }
  if (!current.empty()) {
    while (bound.optional(1) != nullptr && static_cast<std::int64_t>(current.size()) < size) {
      budget.work();
      current.push_back(bound[1]);
    }
    batches.push_back(make_list(budget, std::move(current)));
  }
  return make_iterator(budget, std::move(batches));
}

// Into that many parts whose sizes differ by at most one, the longer ones first.
Value slice(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'slice'", arguments, {"slices", "fill_with"}, 1);
  Budget& budget = runtime.budget();
  const std::int64_t slices = to_index(bound[0]);
  if (slices == 0) throw TemplateError("integer division or modulo by zero");
  const std::vector<Value> all = items_of(budget, input);
  const std::int64_t whole = slices < 0 ? 0 : static_cast<std::int64_t>(all.size()) / slices;
  const std::int64_t longer = slices < 0 ? 0 : static_cast<std::int64_t>(all.size()) % slices;
  std::vector<Value> parts;
  auto position = all.begin();
  for (std::int64_t i = 0; i < slices; ++i) {
    budget.work();
    const auto end = position + whole + (i < longer ? 1 : 0);
    std::vector<Value> part(position, end);
    if (bound.optional(1) != nullptr && i >= longer) part.push_back(bound[1]);
    parts.push_back(make_list(budget, std::move(part)));
    position = end;
  }
  return make_iterator(budget, std::move(parts));
}

Value sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'sum'", arguments, {"attribute", "start"});
  Value total = bound.has(1) ? bound[1] : Value(0);
  if (total.text() != nullptr) throw TemplateError("sum() can't sum strings [use ''.join(seq) instead]");
  ItemSource source(runtime.budget(), input);
  while (const auto item = source.next()) {
    total = apply(runtime.budget(), BinaryOperator::add, total,
                  bound.optional(0) == nullptr ? *item : get_path(runtime, *item, bound[0]));
  }
  return total;
}

constexpr std::array<NamedFilter, 14> kSequenceFilters = {{{"attr", attribute},
                                                           {"batch", batch},
                                                           {"count", length},
                                                           {"d", otherwise},
                                                           {"default", otherwise},
                                                           {"first", first},
                                                           {"items", items},
                                                           {"join", join},
                                                           {"last", last},
                                                           {"length", length},
                                                           {"list", list},
                                                           {"reverse", reverse},
                                                           {"slice", slice},
                                                           {"sum", sum}}};

}  // namespace

FilterFunction find_sequence_filter(std::string_view name) { return find_in(kSequenceFilters, name); }

}  // namespace qpn8::jinja
