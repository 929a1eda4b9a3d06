#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/budget.hpp"

// The dynamic values of a template, with Python's semantics. Values are immutable but for iterators and objects, and
// are shared by reference count. Sequences and dicts know how deep they nest, which bounds every recursion over them;
// cycles can only run through objects, whose owner (the interpreter) cuts them.

namespace qpn8::jinja {

class Value;
class Dict;
class Object;
struct Iterator;
struct Sequence;
struct Text;

struct None {};

/// What a lookup that found nothing gives. It prints as nothing and is false; any other use throws the message.
struct Undefined {
  std::string message;
};

class Value {
 public:
  Value() = default;  ///< None
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(int value) : data_(std::int64_t{value}) {}
  Value(double value) : data_(value) {}
  Value(std::shared_ptr<const Undefined> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Text> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Sequence> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Dict> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Iterator> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<Object> value) : data_(std::move(value)) {}
  Value(const void*) = delete;  // a pointer would convert to bool

  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_undefined() const { return undefined() != nullptr; }

  /// An int; a bool too, as in Python.
  std::optional<std::int64_t> integer() const;
  /// An int, a bool or a float.
  std::optional<double> number() const;

  const Undefined* undefined() const { return pointee<const Undefined>(); }
  const Text* text() const { return pointee<const Text>(); }
  const Sequence* sequence() const { return pointee<const Sequence>(); }
  const Dict* dict() const { return pointee<const Dict>(); }
  Iterator* iterator() const { return pointee<Iterator>(); }
  Object* object() const { return pointee<Object>(); }

  /// Python's `is`: the same object, or the same None, bool or (as small ints are in CPython) number.
  bool same_as(const Value& other) const;

  /// "str", "int", "dict", ... as Python's type(x).__name__.
  std::string_view type_name() const;

  /// Levels of containers in it: 0 for a scalar, 1 for a flat list.
  int depth() const;

 private:
  template <class T>
  T* pointee() const {
    const auto* pointer = std::get_if<std::shared_ptr<T>>(&data_);
    return pointer == nullptr ? nullptr : pointer->get();
  }

  std::variant<None, bool, std::int64_t, double, std::shared_ptr<const Undefined>, std::shared_ptr<const Text>,
               std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, std::shared_ptr<Iterator>,
               std::shared_ptr<Object>>
      data_;
};

/// A str: valid UTF-8, with its length in code points. `markup`: markupsafe's Markup, as |safe and |escape give.
struct Text {
  std::string bytes;
  std::int64_t length;
  bool markup;
  Charge charge;

  bool is_ascii() const { return length == static_cast<std::int64_t>(bytes.size()); }
};

enum class SequenceKind : std::uint8_t { list, tuple, group, range, dict_keys, dict_values, dict_items };

/// A list, a tuple (`group` is what |groupby gives: a tuple with the attributes grouper and list), a range, or a view
/// of a dict.
struct Sequence {
  SequenceKind kind;
  std::vector<Value> items;
  std::array<std::int64_t, 3> range;  ///< start, stop and step of a range
  int depth;
  Charge charge;

  bool is_list() const { return kind == SequenceKind::list; }
  bool is_tuple() const { return kind == SequenceKind::tuple || kind == SequenceKind::group; }
  bool is_view() const { return kind >= SequenceKind::dict_keys; }
};

/// A dict, in order of insertion.
class Dict {
 public:
  struct Entry {
    Value key;
    Value value;
  };

  explicit Dict(Budget& budget) : charge_(budget, kBytes) {}

  const std::vector<Entry>& entries() const { return entries_; }
  int depth() const { return depth_; }

  /// Adds or replaces; TemplateError if the key cannot be hashed.
  void set(Budget& budget, const Value& key, Value value);
  void clear();

  /// nullptr if there is none.
  const Value* find(std::string_view key) const;
  const Value* find(Budget& budget, const Value& key) const;

 private:
  static constexpr std::int64_t kBytes = 160;
  static constexpr std::int64_t kBytesPerEntry = 160;

  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;  ///< by hash_key
  int depth_ = 1;
  Charge charge_;
};

/// A generator or another one-shot iterator. The items are computed when it is made.
struct Iterator {
  std::string_view type_name;
  std::vector<Value> items;
  std::size_t position;
  int depth;
  Charge charge;
};

Value make_undefined(std::string message);
Value make_text(Budget& budget, std::string bytes, bool markup = false);
/// A str of these bytes that is Markup where `text`, a str, is.
Value text_like(Budget& budget, const Value& text, std::string bytes);
inline Value make_text(TextBuilder&& builder, bool markup = false) {
  return make_text(builder.budget(), builder.take(), markup);
}
Value make_sequence(Budget& budget, SequenceKind kind, std::vector<Value> items);
inline Value make_list(Budget& budget, std::vector<Value> items) {
  return make_sequence(budget, SequenceKind::list, std::move(items));
}
inline Value make_tuple(Budget& budget, std::vector<Value> items) {
  return make_sequence(budget, SequenceKind::tuple, std::move(items));
}
/// TemplateError if it has more items than the sandbox admits, or if the step is 0.
Value make_range(Budget& budget, std::int64_t start, std::int64_t stop, std::int64_t step);
Value make_iterator(Budget& budget, std::vector<Value> items, std::string_view type_name = "generator");

/// Equal for values that are equal as keys of a dict (1, 1.0 and True are); TemplateError "unhashable type: ...".
std::string hash_key(Budget& budget, const Value& value);

/// Throws what the use of an undefined value throws; does nothing for any other.
inline void require_defined(const Value& value) {
  if (const Undefined* undefined = value.undefined()) throw TemplateError(undefined->message);
}

/// Walks over anything iterable, taking from an iterator only what is asked for.
class ItemSource {
 public:
  /// TemplateError "'int' object is not iterable".
  ItemSource(Budget& budget, const Value& iterable);

  std::optional<Value> next();

  /// Python's len(); nothing for an iterator.
  std::optional<std::int64_t> size() const;

 private:
  Budget& budget_;
  Value source_;
  std::size_t position_ = 0;  ///< in bytes for a text
};

/// All items.
std::vector<Value> items_of(Budget& budget, const Value& iterable);

/// Python's len(); TemplateError "object of type 'int' has no len()".
std::int64_t length_of(const Value& value);

bool is_iterable(const Value& value);

}  // namespace qpn8::jinja
