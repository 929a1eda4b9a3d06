#include "text/jinja/attributes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/methods.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

// As Jinja's messages name the type of a value.
std::string object_name(const Value& value) {
  if (value.is_none()) return "None";
  if (const Object* object = value.object()) return fmt::format("{} object", object->qualified_name());
  if (value.text() != nullptr && value.text()->markup) return "markupsafe.Markup object";
  return fmt::format("{} object", value.type_name());
}

Value forbidden(const Value& value, std::string_view name) {
  return make_undefined(
      fmt::format("access to attribute {} of {} object is unsafe.", quote(name), quote(value.type_name())));
}

bool is_dunder(std::string_view name) {
  return name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__";
}

std::optional<Value> group_attribute(const Sequence& sequence, std::string_view name) {
  if (sequence.kind != SequenceKind::group) return std::nullopt;
  if (name == "grouper") return sequence.items[0];
  if (name == "list") return sequence.items[1];
  return std::nullopt;
}

// The item at an index that may count from the end.
std::optional<std::int64_t> position_of(const Value& index, std::int64_t length) {
  const auto integer = index.integer();
  if (!integer) return std::nullopt;
  const std::int64_t position = *integer < 0 ? *integer + length : *integer;
  if (position < 0 || position >= length) return std::nullopt;
  return position;
}

std::optional<Value> find_item(Runtime& runtime, const Value& value, const Value& index) {
  if (const Dict* dict = value.dict()) {
    const bool hashable = index.dict() == nullptr && index.iterator() == nullptr &&
                          (index.sequence() == nullptr || index.sequence()->is_tuple());
    const Value* found = hashable ? dict->find(runtime.budget(), index) : nullptr;
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (const Sequence* sequence = value.sequence()) {
    const auto position = position_of(index, static_cast<std::int64_t>(sequence->items.size()));
    if (!position || sequence->is_view()) return std::nullopt;
    return sequence->items[static_cast<std::size_t>(*position)];
  }
  if (const Text* text = value.text()) {
    const auto position = position_of(index, text->length);
    if (!position) return std::nullopt;
    if (!text->is_ascii()) runtime.budget().work_characters(text->bytes.size());
    const std::size_t offset =
        text->is_ascii() ? static_cast<std::size_t>(*position) : byte_offset(text->bytes, *position);
    return make_text(runtime.budget(), text->bytes.substr(offset, code_point_size(text->bytes[offset])), text->markup);
  }
  return std::nullopt;
}

// A slice's bounds after Python's clamping: the first index, the step and how many there are.
struct Slice {
  std::int64_t start;
  std::int64_t step;
  std::int64_t count;
};

std::int64_t slice_bound(const Value& bound) {
  require_defined(bound);
  if (const auto integer = bound.integer()) return *integer;
  throw TemplateError("slice indices must be integers or None or have an __index__ method");
}

Slice resolve_slice(std::int64_t length, const Value& start, const Value& stop, const Value& step_value) {
  const std::int64_t step = step_value.is_none() ? 1 : slice_bound(step_value);
  if (step == 0) throw TemplateError("slice step cannot be zero");
  // Going backwards, -1 stands for "in front of the first".
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? length : length - 1;
  const auto resolve = [&](const Value& bound, std::int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    const std::int64_t index = slice_bound(bound);
    return std::clamp(index < 0 ? index + length : index, low, high);
  };
  const std::int64_t first = resolve(start, step > 0 ? low : high);
  const std::int64_t last = resolve(stop, step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0) return {first, step, 0};
  // Beyond the length any step gives one item, and its negation might overflow.
  const std::int64_t stride = step > length || step < -length ? length + 1 : step < 0 ? -step : step;
  return {first, step, (distance + stride - 1) / stride};
}

Value slice_text(Budget& budget, const Text& text, const Slice& slice) {
  budget.work_bytes(text.bytes.size());
  const auto at = [&](std::int64_t i) { return slice.start + i * slice.step; };
  std::string out;
  if (slice.step == 1) {
    const std::size_t first = byte_offset(text.bytes, slice.start);
    const std::string_view rest = std::string_view{text.bytes}.substr(first);
    out = rest.substr(0, byte_offset(rest, slice.count));
  } else if (text.is_ascii()) {
    budget.work(slice.count);
    for (std::int64_t i = 0; i < slice.count; ++i) out += text.bytes[static_cast<std::size_t>(at(i))];
  } else {
    budget.work(text.length);
    const Charge scratch(budget, text.length * static_cast<std::int64_t>(sizeof(CodePoint)));
    const std::vector<CodePoint> all = code_points(text.bytes);
    for (std::int64_t i = 0; i < slice.count; ++i) append_code_point(out, all[static_cast<std::size_t>(at(i))]);
  }
  return make_text(budget, std::move(out), text.markup);
}

}  // namespace

Value missing_attribute(const Value& value, std::string_view name) {
  return make_undefined(fmt::format("{} has no attribute {}", quote(object_name(value)), quote(name)));
}

std::optional<Value> find_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  require_defined(value);
  if (Object* object = value.object()) {
    if (auto attribute = object->attribute(runtime, name)) return attribute;
  }
  if (const Method method = find_method(value, name)) {
    return make_function(
        std::string(name),
        [value, method](Runtime& caller, const Arguments& arguments) { return method(caller, value, arguments); },
        value.depth());
  }
  if (const Sequence* sequence = value.sequence()) return group_attribute(*sequence, name);
  return std::nullopt;
}

Value get_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (auto attribute = find_attribute(runtime, value, name)) return *attribute;
  if (is_mutating_method(value, name)) return forbidden(value, name);
  if (const Dict* dict = value.dict()) {
    if (const Value* found = dict->find(name)) return *found;
  }
  return is_dunder(name) ? forbidden(value, name) : missing_attribute(value, name);
}

Value get_item(Runtime& runtime, const Value& value, const Value& index) {
  require_defined(value);
  if (auto item = find_item(runtime, value, index)) return *item;
  if (const Text* name = index.text()) return get_attribute(runtime, value, name->bytes);
  return make_undefined(fmt::format("{} has no element {}", object_name(value), to_repr(runtime.budget(), index)));
}

Value get_slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step) {
  require_defined(value);
  if (value.dict() != nullptr) throw TemplateError("unhashable type: 'slice'");
  const Sequence* sequence = value.sequence();
  if (value.text() == nullptr && (sequence == nullptr || sequence->is_view())) {
    throw TemplateError(fmt::format("'{}' object is not subscriptable", value.type_name()));
  }
  const Slice slice = resolve_slice(length_of(value), start, stop, step);
  if (value.text() != nullptr) return slice_text(budget, *value.text(), slice);
  if (sequence->kind == SequenceKind::range) {
    const auto [first, last, stride] = sequence->range;
    const std::int64_t new_start = first + slice.start * stride;
    const std::int64_t new_step = slice.count > 1 ? slice.step * stride : stride;
    return make_range(budget, new_start, new_start + slice.count * new_step, new_step);
  }
  std::vector<Value> items;
  items.reserve(static_cast<std::size_t>(slice.count));
  for (std::int64_t i = 0; i < slice.count; ++i) {
    items.push_back(sequence->items[static_cast<std::size_t>(slice.start + i * slice.step)]);
  }
  return make_sequence(budget, sequence->is_list() ? SequenceKind::list : SequenceKind::tuple, std::move(items));
}

}  // namespace qpn8::jinja
