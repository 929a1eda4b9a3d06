#include "text/jinja/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/object.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

// A rough size of one shared value with its control block.
constexpr std::int64_t kNodeBytes = 96;
// The sandbox's limit.
constexpr std::int64_t kMaxRange = 100'000;

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

void check_depth(int depth) {
  if (depth > kMaxValueDepth) {
    throw TemplateError(fmt::format("values are nested more than {} levels deep", kMaxValueDepth));
  }
}

int depth_around(const std::vector<Value>& items) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  check_depth(deepest + 1);
  return deepest + 1;
}

std::int64_t bytes_of(const std::vector<Value>& items) {
  return kNodeBytes + static_cast<std::int64_t>(items.size() * sizeof(Value));
}

std::string_view name_of(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::list:
      return "list";
    case SequenceKind::tuple:
      return "tuple";
    case SequenceKind::group:
      return "_GroupTuple";
    case SequenceKind::range:
      return "range";
    case SequenceKind::dict_keys:
      return "dict_keys";
    case SequenceKind::dict_values:
      return "dict_values";
    case SequenceKind::dict_items:
      return "dict_items";
  }
  return "list";
}

std::int64_t range_length(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  // Unsigned, since the distance of two 64-bit numbers may need all 64 bits.
  const auto low = static_cast<std::uint64_t>(std::min(start, stop));
  const auto high = static_cast<std::uint64_t>(std::max(start, stop));
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  return static_cast<std::int64_t>(std::min<std::uint64_t>((high - low - 1) / stride + 1, kMaxRange + 1));
}

void append_hash_key(TextBuilder& out, const Value& value) {
  out.budget().work();
  if (const Text* text = value.text()) {
    out.append("s");
    out.append(text->bytes);
  } else if (const auto integer = value.integer()) {
    out.append(fmt::format("i{}", *integer));
  } else if (value.is_float()) {
    const double number = *value.number();
    const bool integral = std::trunc(number) == number && std::abs(number) < 0x1p62;
    out.append(integral ? fmt::format("i{}", static_cast<std::int64_t>(number)) : fmt::format("f{:a}", number));
  } else if (value.is_none()) {
    out.append("n");
  } else if (value.is_undefined()) {
    out.append("u");
  } else if (value.object() != nullptr) {
    out.append(fmt::format("o{}", static_cast<const void*>(value.object())));
  } else if (value.sequence() != nullptr && value.sequence()->is_tuple()) {
    out.append("t");
    for (const Value& item : value.sequence()->items) {
      const std::string key = hash_key(out.budget(), item);
      out.append(fmt::format("{}:", key.size()));
      out.append(key);
    }
  } else {
    throw TemplateError(fmt::format("unhashable type: '{}'", value.type_name()));
  }
}

}  // namespace

std::optional<std::int64_t> Value::integer() const {
  if (const auto* value = std::get_if<std::int64_t>(&data_)) return *value;
  if (const auto* value = std::get_if<bool>(&data_)) return *value ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto* value = std::get_if<double>(&data_)) return *value;
  if (const auto value = integer()) return static_cast<double>(*value);
  return std::nullopt;
}

bool Value::same_as(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  return std::visit(
      Overloaded{
          [](None) { return true; },
          [&](bool value) { return value == std::get<bool>(other.data_); },
          [&](std::int64_t value) { return value == std::get<std::int64_t>(other.data_); },
          [&](double value) { return value == std::get<double>(other.data_); },
          [&](const auto& pointer) { return pointer == std::get<std::decay_t<decltype(pointer)>>(other.data_); },
      },
      data_);
}

std::string_view Value::type_name() const {
  return std::visit(
      Overloaded{
          [](None) -> std::string_view { return "NoneType"; },
          [](bool) -> std::string_view { return "bool"; },
          [](std::int64_t) -> std::string_view { return "int"; },
          [](double) -> std::string_view { return "float"; },
          [](const std::shared_ptr<const Undefined>&) -> std::string_view { return "Undefined"; },
          [](const std::shared_ptr<const Text>& v) -> std::string_view { return v->markup ? "Markup" : "str"; },
          [](const std::shared_ptr<const Sequence>& v) { return name_of(v->kind); },
          [](const std::shared_ptr<const Dict>&) -> std::string_view { return "dict"; },
          [](const std::shared_ptr<Iterator>& v) { return v->type_name; },
          [](const std::shared_ptr<Object>& v) { return v->type_name(); },
      },
      data_);
}

int Value::depth() const {
  if (const Sequence* value = sequence()) return value->depth;
  if (const Dict* value = dict()) return value->depth();
  if (const Iterator* value = iterator()) return value->depth;
  if (const Object* value = object()) return value->depth();
  return 0;
}

void Dict::set(Budget& budget, const Value& key, Value value) {
  check_depth(std::max(key.depth(), value.depth()) + 1);
  depth_ = std::max(depth_, std::max(key.depth(), value.depth()) + 1);
  std::string hashed = hash_key(budget, key);
  const auto found = index_.find(hashed);
  if (found != index_.end()) {
    entries_[found->second].value = std::move(value);
    return;
  }
  charge_.grow(kBytesPerEntry + static_cast<std::int64_t>(hashed.size()));
  index_.emplace(std::move(hashed), entries_.size());
  entries_.push_back({key, std::move(value)});
}

void Dict::clear() {
  entries_.clear();
  index_.clear();
}

const Value* Dict::find(std::string_view key) const {
  std::string hashed = "s";
  hashed += key;
  const auto found = index_.find(hashed);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  const auto found = index_.find(hash_key(budget, key));
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

Value make_undefined(std::string message) { return std::make_shared<const Undefined>(Undefined{std::move(message)}); }

Value make_text(Budget& budget, std::string bytes, bool markup) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  budget.check_text_size(size);
  budget.work_bytes(bytes.size());
  const std::int64_t length = count_code_points(bytes);
  return std::make_shared<const Text>(Text{std::move(bytes), length, markup, Charge(budget, kNodeBytes + size)});
}

Value text_like(Budget& budget, const Value& text, std::string bytes) {
  return make_text(budget, std::move(bytes), text.text()->markup);
}

Value make_sequence(Budget& budget, SequenceKind kind, std::vector<Value> items) {
  budget.work(static_cast<std::int64_t>(items.size()));
  const int depth = depth_around(items);
  Charge charge(budget, bytes_of(items));
  return std::make_shared<const Sequence>(Sequence{kind, std::move(items), {}, depth, std::move(charge)});
}

Value make_range(Budget& budget, std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step == 0) throw TemplateError("range() arg 3 must not be zero");
  const std::int64_t length = range_length(start, stop, step);
  if (length > kMaxRange) {
    throw TemplateError(fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange));
  }
  budget.work(length);
  std::vector<Value> items;
  items.reserve(static_cast<std::size_t>(length));
  for (std::int64_t i = 0, value = start; i < length; ++i) {
    items.emplace_back(value);
    if (i + 1 < length) value += step;
  }
  Charge charge(budget, bytes_of(items));
  return std::make_shared<const Sequence>(
      Sequence{SequenceKind::range, std::move(items), {start, stop, step}, 1, std::move(charge)});
}

Value make_iterator(Budget& budget, std::vector<Value> items, std::string_view type_name) {
  budget.work(static_cast<std::int64_t>(items.size()));
  const int depth = depth_around(items);
  Charge charge(budget, bytes_of(items));
  return std::make_shared<Iterator>(Iterator{type_name, std::move(items), 0, depth, std::move(charge)});
}

std::string hash_key(Budget& budget, const Value& value) {
  TextBuilder out(budget);
  append_hash_key(out, value);
  return out.take();
}

bool is_iterable(const Value& value) {
  return value.text() != nullptr || value.sequence() != nullptr || value.dict() != nullptr ||
         value.iterator() != nullptr || value.is_undefined();
}

ItemSource::ItemSource(Budget& budget, const Value& iterable) : budget_(budget), source_(iterable) {
  if (!is_iterable(iterable)) throw TemplateError(fmt::format("'{}' object is not iterable", iterable.type_name()));
}

std::optional<Value> ItemSource::next() {
  budget_.work();
  if (const Sequence* sequence = source_.sequence()) {
    if (position_ < sequence->items.size()) return sequence->items[position_++];
  } else if (const Dict* dict = source_.dict()) {
    if (position_ < dict->entries().size()) return dict->entries()[position_++].key;
  } else if (Iterator* iterator = source_.iterator()) {
    if (iterator->position < iterator->items.size()) return iterator->items[iterator->position++];
  } else if (const Text* text = source_.text()) {
    if (position_ < text->bytes.size()) {
      const std::size_t size = code_point_size(text->bytes[position_]);
      position_ += size;
      return make_text(budget_, text->bytes.substr(position_ - size, size));
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> ItemSource::size() const {
  if (source_.iterator() != nullptr) return std::nullopt;
  return length_of(source_);
}

std::vector<Value> items_of(Budget& budget, const Value& iterable) {
  std::vector<Value> items;
  ItemSource source(budget, iterable);
  items.reserve(static_cast<std::size_t>(std::min(source.size().value_or(0), kMaxRange)));
  while (auto item = source.next()) items.push_back(std::move(*item));
  return items;
}

std::int64_t length_of(const Value& value) {
  if (const Text* text = value.text()) return text->length;
  if (const Sequence* sequence = value.sequence()) return static_cast<std::int64_t>(sequence->items.size());
  if (const Dict* dict = value.dict()) return static_cast<std::int64_t>(dict->entries().size());
  if (value.is_undefined()) return 0;
  throw TemplateError(fmt::format("object of type '{}' has no len()", value.type_name()));
}

}  // namespace qpn8::jinja
