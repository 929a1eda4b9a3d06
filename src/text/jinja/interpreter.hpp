#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/jinja/ast.hpp"
#include "text/jinja/loop.hpp"
#include "text/jinja/object.hpp"
#include "text/jinja/scope.hpp"

namespace qpn8::jinja {

/// Runs one rendering of a template by walking its tree.
class Interpreter final : public Runtime {
 public:
  /// `variables` is a dict; it and the budget must outlive the interpreter.
  Interpreter(Budget& budget, const Value& variables);
  ~Interpreter() override;

  std::string render(const Body& body);

  /// Of the node that was evaluated last: where an error came from.
  int line() const { return line_; }

  void adopt(std::shared_ptr<Cyclic> object) override;

  /// Renders a macro's body with the arguments, in a scope inside the one where the macro was defined.
  Value call_procedure(const Procedure& procedure, std::string_view description,
                       const std::shared_ptr<const Scope>& closure, const Arguments& arguments);

 private:
  enum class Flow : std::uint8_t { normal, break_loop, continue_loop };

  /// Makes a scope the current one for the lifetime of the object.
  class Inside;
  /// Takes in what is printed in the lifetime of the object.
  class Capture;

  // Statements; interpreter.cpp.
  Flow run(const Body& body);
  Flow run(const Statement& statement);
  Flow execute(const Data& node);
  Flow execute(const Print& node);
  Flow execute(const For& node);
  Flow execute(const If& node);
  Flow execute(const Set& node);
  Flow execute(const SetBlock& node);
  Flow execute(const FilterBlock& node);
  Flow execute(const With& node);
  Flow execute(const Macro& node);
  Flow execute(const CallBlock& node);
  Flow execute(const Generation& node);
  Flow execute(const Break& node);
  Flow execute(const Continue& node);
  Flow run_loop(const For& node, const Value& iterable, int depth0);
  std::shared_ptr<Loop> make_loop(const For& node, const Value& iterable, int depth0);
  /// Which of the parameters the arguments gave a value.
  std::vector<bool> bind_given(Scope& scope, const Procedure& procedure, std::string_view description,
                               const Arguments& arguments);
  void bind_defaults(Scope& scope, const Procedure& procedure, const std::vector<bool>& given);
  Value make_macro(const Procedure& procedure, std::string name);
  Value captured(const Body& body);
  Value filtered(Value value, const std::vector<FilterCall>& filters);
  void assign(Scope& scope, const Target& target, const Value& value);

  // Expressions; evaluator.cpp.
  Value evaluate(const Expression& expression);
  Value evaluate(const Constant& node);
  Value evaluate(const Name& node);
  Value evaluate(const GetAttribute& node);
  Value evaluate(const GetItem& node);
  Value evaluate(const GetSlice& node);
  Value evaluate(const Call& node);
  Value evaluate(const Filter& node);
  Value evaluate(const Test& node);
  Value evaluate(const Unary& node);
  Value evaluate(const Not& node);
  Value evaluate(const Binary& node);
  Value evaluate(const Logical& node);
  Value evaluate(const Comparison& node);
  Value evaluate(const Concatenation& node);
  Value evaluate(const Conditional& node);
  Value evaluate(const ListDisplay& node);
  Value evaluate(const DictDisplay& node);
  Arguments evaluate(const CallArguments& arguments);
  Value evaluate_optional(const ExpressionPtr& expression) { return expression ? evaluate(*expression) : Value(); }
  Value look_up(std::string_view name);

  const Dict& variables_;
  std::shared_ptr<Scope> scope_;
  TextBuilder* out_ = nullptr;
  int line_ = 1;
  std::vector<std::shared_ptr<Cyclic>> adopted_;
};

}  // namespace qpn8::jinja
