#include "text/jinja/methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"

// Methods of dict, list and tuple, and the lookup of all methods.

namespace qpn8::jinja {
namespace {

Value dict_view(Runtime& runtime, const Value& self, const Arguments& arguments, SequenceKind kind) {
  refuse_arguments("dict view", arguments);
  std::vector<Value> items;
  items.reserve(self.dict()->entries().size());
  for (const auto& [key, value] : self.dict()->entries()) {
    items.push_back(kind == SequenceKind::dict_keys     ? key
                    : kind == SequenceKind::dict_values ? value
                                                        : make_tuple(runtime.budget(), {key, value}));
  }
  return make_sequence(runtime.budget(), kind, std::move(items));
}

Value dict_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return dict_view(runtime, self, arguments, SequenceKind::dict_items);
}
Value dict_keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return dict_view(runtime, self, arguments, SequenceKind::dict_keys);
}
Value dict_values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return dict_view(runtime, self, arguments, SequenceKind::dict_values);
}

Value dict_get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("get()", arguments, {"key", "default"}, 1);
  const Value* found = self.dict()->find(runtime.budget(), bound[0]);
  if (found != nullptr) return *found;
  return bound.has(1) ? bound[1] : Value();
}

Value copy(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  refuse_arguments("copy()", arguments);
  return self;
}

Value sequence_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("index()", arguments, {"value", "start", "stop"}, 1);
  const std::vector<Value>& items = self.sequence()->items;
  const auto size = static_cast<std::int64_t>(items.size());
  const auto clamp = [&](std::size_t i, std::int64_t otherwise) {
    const std::int64_t index = bound.integer(i, otherwise);
    return std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const std::int64_t stop = clamp(2, size);
  for (std::int64_t i = clamp(1, 0); i < stop; ++i) {
    const Value& item = items[static_cast<std::size_t>(i)];
    if (item.same_as(bound[0]) || equals(runtime.budget(), item, bound[0])) return i;
  }
  throw TemplateError(fmt::format("{} is not in {}", to_repr(runtime.budget(), bound[0]), self.type_name()));
}

Value sequence_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("count()", arguments, {"value"}, 1);
  const std::vector<Value>& items = self.sequence()->items;
  return std::int64_t{std::count_if(items.begin(), items.end(), [&](const Value& item) {
    return item.same_as(bound[0]) || equals(runtime.budget(), item, bound[0]);
  })};
}

constexpr std::array<NamedMethod, 5> kDictMethods = {
    {{"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}, {"get", dict_get}, {"copy", copy}}};
constexpr std::array<NamedMethod, 2> kSequenceMethods = {{{"index", sequence_index}, {"count", sequence_count}}};
constexpr std::array<std::string_view, 5> kDictMutators = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::array<std::string_view, 8> kListMutators = {"append", "clear", "pop",    "reverse",
                                                           "insert", "sort",  "extend", "remove"};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Method find_method(const Value& value, std::string_view name) {
  if (value.text() != nullptr) {
    if (const Method method = find_text_method(name)) return method;
    if (const Method method = find_text_search_method(name)) return method;
    return find_text_split_method(name);
  }
  if (value.dict() != nullptr) return find_in(kDictMethods, name);
  if (const Sequence* sequence = value.sequence()) {
    if (sequence->is_list() && name == "copy") return copy;
    if (!sequence->is_view()) return find_in(kSequenceMethods, name);
  }
  return nullptr;
}

bool is_mutating_method(const Value& value, std::string_view name) {
  if (value.dict() != nullptr) return is_among(kDictMutators, name);
  const Sequence* sequence = value.sequence();
  return sequence != nullptr && sequence->is_list() && is_among(kListMutators, name);
}

}  // namespace qpn8::jinja
