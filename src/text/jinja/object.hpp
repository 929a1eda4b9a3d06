#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.hpp"

namespace qpn8::jinja {

class Runtime;

/// The arguments of one call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

/// What is neither data nor text: functions, macros, namespaces, loops.
class Object {
 public:
  virtual ~Object() = default;

  /// Python's type(x).__name__, and the same with the module in front where Jinja's messages have it.
  virtual std::string_view type_name() const = 0;
  virtual std::string_view qualified_name() const { return type_name(); }

  virtual void append_repr(TextBuilder& out) = 0;
  virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
  virtual bool is_callable() const { return false; }
  /// TemplateError "'X' object is not callable" unless overridden.
  virtual Value call(Runtime& runtime, const Arguments& arguments);

  /// Levels of containers that it holds; see Value::depth.
  virtual int depth() const { return 0; }
};

/// A function of the interpreter, or a method bound to its value.
class Function final : public Object {
 public:
  using Body = std::function<Value(Runtime&, const Arguments&)>;

  Function(std::string name, Body body, int depth = 0)
      : name_(std::move(name)), body_(std::move(body)), depth_(depth) {}

  std::string_view type_name() const override { return "builtin_function_or_method"; }
  void append_repr(TextBuilder& out) override;
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override { return body_(runtime, arguments); }
  int depth() const override { return depth_; }

 private:
  std::string name_;
  Body body_;
  int depth_;
};

inline Value make_function(std::string name, Function::Body body, int depth = 0) {
  return std::shared_ptr<Object>(std::make_shared<Function>(std::move(name), std::move(body), depth));
}

/// What functions, filters, tests and methods may use of the interpreter that runs them.
class Runtime {
 public:
  explicit Runtime(Budget& budget) : budget_(budget) {}
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Budget& budget() { return budget_; }

  /// Takes care that the object's cycles are cut when the rendering ends.
  virtual void adopt(std::shared_ptr<class Cyclic> object) = 0;

 private:
  Budget& budget_;
};

/// What may be part of a reference cycle: it can be changed after it was made.
class Cyclic {
 public:
  virtual ~Cyclic() = default;
  virtual void clear() = 0;
};

/// Calls a value; TemplateError if it is undefined or not callable.
Value call_value(Runtime& runtime, const Value& callee, const Arguments& arguments);

/// Matches arguments to parameters. Parameters that were not given are empty; TemplateError names the function for an
/// argument too many, an unknown keyword, or one of the first `required` parameters missing.
class BoundArguments {
 public:
  BoundArguments(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> names,
                 std::size_t required = 0);

  bool has(std::size_t i) const { return values_[i] != nullptr; }
  /// Must have it.
  const Value& operator[](std::size_t i) const { return *values_[i]; }
  /// nullptr where it was not given or is None.
  const Value* optional(std::size_t i) const {
    return values_[i] == nullptr || values_[i]->is_none() ? nullptr : values_[i];
  }
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  bool boolean(std::size_t i, bool otherwise) const;
  std::string_view text(std::size_t i, std::string_view otherwise) const;

 private:
  std::vector<const Value*> values_;
};

/// For a function without parameters: TemplateError that names it for any argument.
void refuse_arguments(std::string_view function, const Arguments& arguments);

/// Python's index conversion: TemplateError "'float' object cannot be interpreted as an integer".
std::int64_t to_index(const Value& value);

/// The bytes of a str; TemplateError that names `what` for any other type.
std::string_view to_text(const Value& value, std::string_view what);

}  // namespace qpn8::jinja
