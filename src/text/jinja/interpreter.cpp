#include "text/jinja/interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/filters.hpp"
#include "text/jinja/globals.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"

namespace qpn8::jinja {
namespace {

/// A macro, or the body of a call block, with the scope it was defined in.
class MacroObject final : public Object {
 public:
  MacroObject(Interpreter& interpreter, const Procedure& procedure, std::string name,
              std::shared_ptr<const Scope> closure)
      : interpreter_(interpreter), procedure_(procedure), name_(std::move(name)), closure_(std::move(closure)) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string_view qualified_name() const override { return "jinja2.runtime.Macro"; }
  void append_repr(TextBuilder& out) override {
    out.append(fmt::format("<Macro {}>", name_.empty() ? "anonymous" : quote(name_)));
  }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override {
    if (name == "name") return make_text(runtime.budget(), name_);
    return std::nullopt;
  }
  bool is_callable() const override { return true; }
  Value call(Runtime& /*runtime*/, const Arguments& arguments) override {
    return interpreter_.call_procedure(procedure_, name_.empty() ? "None" : quote(name_), closure_, arguments);
  }

 private:
  Interpreter& interpreter_;
  const Procedure& procedure_;
  std::string name_;
  std::shared_ptr<const Scope> closure_;
};

}  // namespace

class Interpreter::Inside {
 public:
  Inside(Interpreter& interpreter, std::shared_ptr<Scope> scope)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.scope_, std::move(scope))) {}
  ~Inside() { interpreter_.scope_ = std::move(outer_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> outer_;
};

class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), out_(interpreter.budget()), outer_(std::exchange(interpreter.out_, &out_)) {}
  ~Capture() { interpreter_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Value take() { return make_text(std::move(out_)); }
  std::string take_bytes() { return out_.take(); }

 private:
  Interpreter& interpreter_;
  TextBuilder out_;
  TextBuilder* outer_;
};

Interpreter::Interpreter(Budget& budget, const Value& variables)
    : Runtime(budget), variables_(*variables.dict()), scope_(std::make_shared<Scope>(nullptr)) {}

Interpreter::~Interpreter() {
  scope_->clear();
  for (const auto& object : adopted_) object->clear();
}

void Interpreter::adopt(std::shared_ptr<Cyclic> object) {
  // A rough size of what stays alive with it.
  constexpr std::int64_t kBytes = 512;
  budget().reserve(kBytes);
  adopted_.push_back(std::move(object));
}

std::string Interpreter::render(const Body& body) {
  Capture capture(*this);
  run(body);
  return capture.take_bytes();
}

Interpreter::Flow Interpreter::run(const Body& body) {
  for (const Statement& statement : body) {
    const Flow flow = run(statement);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Statement& statement) {
  const Nesting nesting(budget());
  budget().work();
  line_ = statement.line;
  return std::visit([this](const auto& node) { return execute(node); }, statement.node);
}

Interpreter::Flow Interpreter::execute(const Data& node) {
  out_->append(node.text);
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const Print& node) {
  append_str(*out_, evaluate(*node.value));
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    if (is_true(evaluate(*condition))) return run(body);
  }
  return run(node.otherwise);
}

Interpreter::Flow Interpreter::execute(const For& node) {
  const Value iterable = evaluate(*node.iterable);
  return run_loop(node, iterable, 0);
}

std::shared_ptr<Loop> Interpreter::make_loop(const For& node, const Value& iterable, int depth0) {
  Loop::Condition condition;
  Loop::Recursion recursion;
  // The loop keeps the scope around it, where a variable may come to keep the loop.
  if (node.condition != nullptr || node.recursive) adopt(scope_);
  if (node.condition != nullptr) {
    condition = [this, &node, outer = scope_](const Value& item) {
      const Inside inside(*this, std::make_shared<Scope>(outer));
      assign(*scope_, node.target, item);
      return is_true(evaluate(*node.condition));
    };
  }
  if (node.recursive) {
    recursion = [this, &node, outer = scope_](const Value& inner, int inner_depth0) {
      const Nesting nesting(budget());
      const Inside inside(*this, outer);
      Capture capture(*this);
      run_loop(node, inner, inner_depth0);
      return capture.take();
    };
  }
  return std::make_shared<Loop>(budget(), iterable, std::move(condition), std::move(recursion), depth0);
}

Interpreter::Flow Interpreter::run_loop(const For& node, const Value& iterable, int depth0) {
  const std::shared_ptr<Loop> loop = make_loop(node, iterable, depth0);
  // As in Jinja, a body that never came to its end counts as not having run.
  bool completed_one = false;
  while (const auto item = loop->next()) {
    const Inside inside(*this, std::make_shared<Scope>(scope_));
    assign(*scope_, node.target, *item);
    scope_->set("loop", std::shared_ptr<Object>(loop));
    const Flow flow = run(node.body);
    completed_one |= flow == Flow::normal;
    if (flow == Flow::break_loop) break;
  }
  if (completed_one) return Flow::normal;
  const Inside inside(*this, std::make_shared<Scope>(scope_));
  return run(node.otherwise);
}

Interpreter::Flow Interpreter::execute(const Set& node) {
  assign(*scope_, node.target, evaluate(*node.value));
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const SetBlock& node) {
  Value value;
  {
    const Inside inside(*this, std::make_shared<Scope>(scope_));
    value = filtered(captured(node.body), node.filters);
  }
  assign(*scope_, node.target, value);
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const FilterBlock& node) {
  const Inside inside(*this, std::make_shared<Scope>(scope_));
  append_str(*out_, filtered(captured(node.body), node.filters));
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const With& node) {
  const auto inner = std::make_shared<Scope>(scope_);
  for (const auto& [target, value] : node.bindings) assign(*inner, target, evaluate(*value));
  const Inside inside(*this, inner);
  return run(node.body);
}

Interpreter::Flow Interpreter::execute(const Macro& node) {
  scope_->set(node.procedure.name, make_macro(node.procedure, node.procedure.name));
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const CallBlock& node) {
  const Call& call = std::get<Call>(node.call->node);
  const Value callee = evaluate(*call.callee);
  Arguments arguments = evaluate(call.arguments);
  arguments.keywords.emplace_back("caller", make_macro(node.caller, ""));
  append_str(*out_, call_value(*this, callee, arguments));
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const Generation& node) {
  const Inside inside(*this, std::make_shared<Scope>(scope_));
  return run(node.body);
}

Interpreter::Flow Interpreter::execute(const Break& /*node*/) { return Flow::break_loop; }
Interpreter::Flow Interpreter::execute(const Continue& /*node*/) { return Flow::continue_loop; }

Value Interpreter::make_macro(const Procedure& procedure, std::string name) {
  // The scope comes to hold the macro, and the macro holds the scope.
  adopt(scope_);
  return std::shared_ptr<Object>(std::make_shared<MacroObject>(*this, procedure, std::move(name), scope_));
}

Value Interpreter::call_procedure(const Procedure& procedure, std::string_view description,
                                  const std::shared_ptr<const Scope>& closure, const Arguments& arguments) {
  const Nesting nesting(budget());
  const Inside inside(*this, std::make_shared<Scope>(closure));
  bind_defaults(*scope_, procedure, bind_given(*scope_, procedure, description, arguments));
  return captured(procedure.body);
}

std::vector<bool> Interpreter::bind_given(Scope& scope, const Procedure& procedure, std::string_view description,
                                          const Arguments& arguments) {
  const std::vector<std::string>& parameters = procedure.parameters;
  const std::size_t positional = std::min(arguments.positional.size(), parameters.size());
  std::vector<bool> given(parameters.size(), false);
  for (std::size_t i = 0; i < positional; ++i) {
    scope.set(parameters[i], arguments.positional[i]);
    given[i] = true;
  }
  const auto first_rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(positional);
  if (procedure.uses_varargs) {
    scope.set("varargs", make_tuple(budget(), {first_rest, arguments.positional.end()}));
  } else if (first_rest != arguments.positional.end()) {
    throw TemplateError(fmt::format("macro {} takes not more than {} argument(s)", description, parameters.size()));
  }

  if (procedure.uses_caller) scope.set("caller", make_undefined("No caller defined"));
  const auto rest = std::make_shared<Dict>(budget());
  for (const auto& [name, value] : arguments.keywords) {
    const auto place = std::find(parameters.begin() + static_cast<std::ptrdiff_t>(positional), parameters.end(), name);
    if (place != parameters.end()) {
      scope.set(*place, value);
      given[static_cast<std::size_t>(place - parameters.begin())] = true;
    } else if (procedure.uses_caller && name == "caller") {
      scope.set("caller", value);
    } else if (procedure.uses_kwargs) {
      rest->set(budget(), make_text(budget(), name), value);
    } else {
      throw TemplateError(fmt::format("macro {} takes no keyword argument {}", description, quote(name)));
    }
  }
  if (procedure.uses_kwargs) scope.set("kwargs", Value(std::shared_ptr<const Dict>(rest)));
  return given;
}

void Interpreter::bind_defaults(Scope& scope, const Procedure& procedure, const std::vector<bool>& given) {
  const std::vector<std::string>& parameters = procedure.parameters;
  // A default may refer to another parameter, but not to a variable outside that has a parameter's name.
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!given[i]) scope.set(parameters[i], make_undefined(fmt::format("{} is undefined", quote(parameters[i]))));
  }
  const std::size_t without_default = parameters.size() - procedure.defaults.size();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    scope.set(parameters[i], i < without_default
                                 ? make_undefined(fmt::format("parameter {} was not provided", quote(parameters[i])))
                                 : evaluate(*procedure.defaults[i - without_default]));
  }
}

Value Interpreter::captured(const Body& body) {
  Capture capture(*this);
  run(body);
  return capture.take();
}

Value Interpreter::filtered(Value value, const std::vector<FilterCall>& filters) {
  for (const FilterCall& filter : filters) {
    line_ = filter.line;
    value = apply_filter(*this, filter.name, value, evaluate(filter.arguments));
  }
  return value;
}

void Interpreter::assign(Scope& scope, const Target& target, const Value& value) {
  if (const auto* name = std::get_if<std::string>(&target.place)) {
    scope.set(*name, value);
  } else if (const auto* place = std::get_if<Target::Attribute>(&target.place)) {
    auto* const space = dynamic_cast<Namespace*>(look_up(place->object).object());
    if (space == nullptr) throw TemplateError("cannot assign attribute on non-namespace object");
    space->set(budget(), make_text(budget(), place->name), value);
  } else {
    const auto& targets = std::get<std::vector<Target>>(target.place);
    require_defined(value);
    const std::vector<Value> items = items_of(budget(), value);
    if (items.size() > targets.size()) {
      throw TemplateError(fmt::format("too many values to unpack (expected {})", targets.size()));
    }
    if (items.size() < targets.size()) {
      throw TemplateError(
          fmt::format("not enough values to unpack (expected {}, got {})", targets.size(), items.size()));
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(scope, targets[i], items[i]);
  }
}

}  // namespace qpn8::jinja
