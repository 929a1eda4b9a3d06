#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"

// Filters that compare items with each other. Texts are compared without regard to case unless it is asked for.

namespace qpn8::jinja {
namespace {

struct Keyed {
  Value key;
  Value item;
};

// Stable, also in reverse.
void sort_by_key(Budget& budget, std::vector<Keyed>& items, bool reverse) {
  if (reverse) std::reverse(items.begin(), items.end());
  std::stable_sort(items.begin(), items.end(),
                   [&](const Keyed& a, const Keyed& b) { return less_than(budget, a.key, b.key); });
  if (reverse) std::reverse(items.begin(), items.end());
}

Value key_of(Runtime& runtime, const Value& item, const Value& path, bool case_sensitive, const Value* otherwise) {
  const Value key = get_path(runtime, item, path, otherwise);
  return case_sensitive ? key : lower_if_text(runtime, key);
}

// The keys of several comma-separated paths, as a list.
Value keys_of(Runtime& runtime, const Value& item, const Value& paths, bool case_sensitive) {
  if (paths.text() == nullptr) return key_of(runtime, item, paths, case_sensitive, nullptr);
  std::vector<Value> keys;
  const std::string_view names = paths.text()->bytes;
  for (std::size_t start = 0; start <= names.size();) {
    const std::size_t comma = std::min(names.find(',', start), names.size());
    const Value path = make_text(runtime.budget(), std::string(names.substr(start, comma - start)));
    keys.push_back(key_of(runtime, item, path, case_sensitive, nullptr));
    start = comma + 1;
  }
  return make_list(runtime.budget(), std::move(keys));
}

Value list_of_items(Runtime& runtime, const std::vector<Keyed>& keyed) {
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (const Keyed& entry : keyed) items.push_back(entry.item);
  return make_list(runtime.budget(), std::move(items));
}

Value sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'sort'", arguments, {"reverse", "case_sensitive", "attribute"});
  const Value paths = bound.has(2) ? bound[2] : Value();
  std::vector<Keyed> keyed;
  ItemSource source(runtime.budget(), input);
  while (const auto item = source.next()) {
    keyed.push_back({keys_of(runtime, *item, paths, bound.boolean(1, false)), *item});
  }
  sort_by_key(runtime.budget(), keyed, bound.boolean(0, false));
  return list_of_items(runtime, keyed);
}

Value dictsort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'dictsort'", arguments, {"case_sensitive", "by", "reverse"});
  const std::string_view by = bound.text(1, "key");
  if (by != "key" && by != "value") throw TemplateError(R"(You can only sort by either "key" or "value")");
  require_defined(input);
  if (input.dict() == nullptr) {
    throw TemplateError(fmt::format("filter 'dictsort': needs a dict, not {}", input.type_name()));
  }
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : input.dict()->entries()) {
    const Value& sorted_by = by == "key" ? key : value;
    keyed.push_back({bound.boolean(0, false) ? sorted_by : lower_if_text(runtime, sorted_by),
                     make_tuple(runtime.budget(), {key, value})});
  }
  sort_by_key(runtime.budget(), keyed, bound.boolean(2, false));
  return list_of_items(runtime, keyed);
}

Value unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'unique'", arguments, {"case_sensitive", "attribute"});
  const Value path = bound.has(1) ? bound[1] : Value();
  std::unordered_set<std::string> seen;
  Charge seen_charge(runtime.budget(), 0);
  std::vector<Value> out;
  ItemSource source(runtime.budget(), input);
  while (const auto item = source.next()) {
    std::string key = hash_key(runtime.budget(), key_of(runtime, *item, path, bound.boolean(0, false), nullptr));
    seen_charge.grow(static_cast<std::int64_t>(key.size()));
    if (seen.insert(std::move(key)).second) out.push_back(*item);
  }
  return make_iterator(runtime.budget(), std::move(out));
}

template <bool largest>
Value extreme(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter", arguments, {"case_sensitive", "attribute"});
  const Value path = bound.has(1) ? bound[1] : Value();
  const auto keyed = [&](const Value& item) {
    return Keyed{key_of(runtime, item, path, bound.boolean(0, false), nullptr), item};
  };
  ItemSource source(runtime.budget(), input);
  const auto first = source.next();
  if (!first) return make_undefined("No aggregated item, sequence was empty.");
  Keyed best = keyed(*first);
  while (const auto item = source.next()) {
    Keyed candidate = keyed(*item);
    const CompareOperator better = largest ? CompareOperator::greater : CompareOperator::less;
    if (compare(runtime.budget(), better, candidate.key, best.key)) best = std::move(candidate);
  }
  return best.item;
}

Value group_of(Runtime& runtime, const std::vector<Keyed>& keyed, std::size_t begin, std::size_t end, Value grouper) {
  std::vector<Value> items;
  for (std::size_t i = begin; i < end; ++i) items.push_back(keyed[i].item);
  Value list = make_list(runtime.budget(), std::move(items));
  return make_sequence(runtime.budget(), SequenceKind::group, {std::move(grouper), std::move(list)});
}

Value groupby(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'groupby'", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const Value* otherwise = bound.optional(1);
  std::vector<Keyed> keyed;
  ItemSource source(runtime.budget(), input);
  while (const auto item = source.next()) {
    keyed.push_back({key_of(runtime, *item, bound[0], bound.boolean(2, false), otherwise), *item});
  }
  sort_by_key(runtime.budget(), keyed, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < keyed.size();) {
    std::size_t end = begin + 1;
    while (end < keyed.size() && equals(runtime.budget(), keyed[end].key, keyed[begin].key)) ++end;
    // The group's key is the first item's as it is written, not as it was compared.
    groups.push_back(group_of(runtime, keyed, begin, end, get_path(runtime, keyed[begin].item, bound[0], otherwise)));
    begin = end;
  }
  return make_list(runtime.budget(), std::move(groups));
}

constexpr std::array<NamedFilter, 6> kOrderingFilters = {{{"dictsort", dictsort},
                                                          {"groupby", groupby},
                                                          {"max", extreme<true>},
                                                          {"min", extreme<false>},
                                                          {"sort", sort},
                                                          {"unique", unique}}};

}  // namespace

FilterFunction find_ordering_filter(std::string_view name) { return find_in(kOrderingFilters, name); }

}  // namespace qpn8::jinja
