#include <fmt/format.h>

#include "text/jinja/attributes.hpp"
#include "text/jinja/filters.hpp"
#include "text/jinja/globals.hpp"
#include "text/jinja/interpreter.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/tests.hpp"

// The part of the interpreter that evaluates expressions.

namespace qpn8::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const Nesting nesting(budget());
  budget().work();
  line_ = expression.line;
  return std::visit([this](const auto& node) { return evaluate(node); }, expression.node);
}

Value Interpreter::evaluate(const Constant& node) { return node.value; }

Value Interpreter::look_up(std::string_view name) {
  if (const Value* found = scope_->find(name)) return *found;
  if (const Value* found = variables_.find(name)) return *found;
  if (auto global = find_global(name)) return *global;
  return make_undefined(fmt::format("{} is undefined", quote(name)));
}

Value Interpreter::evaluate(const Name& node) { return look_up(node.name); }

Value Interpreter::evaluate(const GetAttribute& node) {
  return get_attribute(*this, evaluate(*node.object), node.name);
}

Value Interpreter::evaluate(const GetItem& node) {
  const Value object = evaluate(*node.object);
  return get_item(*this, object, evaluate(*node.index));
}

Value Interpreter::evaluate(const GetSlice& node) {
  const Value object = evaluate(*node.object);
  const Value start = evaluate_optional(node.start);
  const Value stop = evaluate_optional(node.stop);
  return get_slice(budget(), object, start, stop, evaluate_optional(node.step));
}

Value Interpreter::evaluate(const Call& node) {
  const Value callee = evaluate(*node.callee);
  const Arguments arguments = evaluate(node.arguments);
  return call_value(*this, callee, arguments);
}

Value Interpreter::evaluate(const Filter& node) {
  const Value input = evaluate(*node.input);
  const Arguments arguments = evaluate(node.call.arguments);
  return apply_filter(*this, node.call.name, input, arguments);
}

Value Interpreter::evaluate(const Test& node) {
  const Value subject = evaluate(*node.subject);
  const Arguments arguments = evaluate(node.arguments);
  return apply_test(*this, node.name, subject, arguments);
}

Value Interpreter::evaluate(const Unary& node) { return apply(node.op, evaluate(*node.operand)); }

Value Interpreter::evaluate(const Not& node) { return !is_true(evaluate(*node.operand)); }

Value Interpreter::evaluate(const Binary& node) {
  const Value left = evaluate(*node.left);
  const Value right = evaluate(*node.right);
  return apply(budget(), node.op, left, right);
}

Value Interpreter::evaluate(const Logical& node) {
  Value left = evaluate(*node.left);
  return is_true(left) == node.is_and ? evaluate(*node.right) : left;
}

// a < b < c compares b with both neighbours and evaluates it once.
Value Interpreter::evaluate(const Comparison& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = evaluate(*operand);
    if (!compare(budget(), op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate(const Concatenation& node) {
  TextBuilder out(budget());
  for (const ExpressionPtr& part : node.parts) append_str(out, evaluate(*part));
  return make_text(std::move(out));
}

Value Interpreter::evaluate(const Conditional& node) {
  const int line = line_;
  if (is_true(evaluate(*node.test))) return evaluate(*node.yes);
  if (node.no != nullptr) return evaluate(*node.no);
  return make_undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.", line));
}

Value Interpreter::evaluate(const ListDisplay& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExpressionPtr& item : node.items) items.push_back(evaluate(*item));
  return make_sequence(budget(), node.is_tuple ? SequenceKind::tuple : SequenceKind::list, std::move(items));
}

Value Interpreter::evaluate(const DictDisplay& node) {
  auto dict = std::make_shared<Dict>(budget());
  for (const auto& [key, value] : node.items) {
    const Value evaluated_key = evaluate(*key);
    dict->set(budget(), evaluated_key, evaluate(*value));
  }
  return std::shared_ptr<const Dict>(std::move(dict));
}

Arguments Interpreter::evaluate(const CallArguments& arguments) {
  Arguments result;
  for (const ExpressionPtr& argument : arguments.positional) result.positional.push_back(evaluate(*argument));
  if (arguments.sequence != nullptr) {
    ItemSource source(budget(), evaluate(*arguments.sequence));
    while (auto item = source.next()) result.positional.push_back(std::move(*item));
  }
  for (const auto& [name, value] : arguments.keywords) result.keywords.emplace_back(name, evaluate(*value));
  if (arguments.mapping != nullptr) {
    const Value mapping = evaluate(*arguments.mapping);
    require_defined(mapping);
    if (mapping.dict() == nullptr) {
      throw TemplateError(fmt::format("argument after ** must be a mapping, not {}", mapping.type_name()));
    }
    for (const auto& [key, value] : mapping.dict()->entries()) {
      result.keywords.emplace_back(to_text(key, "a keyword"), value);
    }
  }
  return result;
}

}  // namespace qpn8::jinja
