#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

#include "text/jinja/expression_parser.hpp"
#include "text/jinja/filters.hpp"
#include "text/jinja/syntax_depth.hpp"
#include "text/jinja/tests.hpp"

// The part of the expression parser below the operators: constants, names, displays, and what may follow an operand.

namespace qpn8::jinja {

ExpressionPtr ExpressionParser::primary() {
  switch (tokens_.current().kind) {
    case TokenKind::name:
      return name_or_constant();
    case TokenKind::string:
      return string_constant();
    case TokenKind::integer:
    case TokenKind::real:
      return number_constant();
    default:
      break;
  }
  if (tokens_.skip("(")) {
    ExpressionPtr inside = tuple(true, "", true);
    tokens_.expect(")");
    return inside;
  }
  if (tokens_.at("[")) return list_display();
  if (tokens_.at("{")) return dict_display();
  tokens_.fail(fmt::format("unexpected '{}'", tokens_.current().description()));
}

ExpressionPtr ExpressionParser::name_or_constant() {
  const Token& token = tokens_.take();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return make(Constant{true}, token.line);
  if (name == "false" || name == "False") return make(Constant{false}, token.line);
  if (name == "none" || name == "None") return make(Constant{Value()}, token.line);
  special_names_.caller |= name == "caller";
  special_names_.varargs |= name == "varargs";
  special_names_.kwargs |= name == "kwargs";
  return make(Name{name}, token.line);
}

ExpressionPtr ExpressionParser::string_constant() {
  const int line = tokens_.current().line;
  std::string text;
  while (tokens_.at(TokenKind::string)) text += tokens_.take().text;
  return make(Constant{make_text(budget_, std::move(text))}, line);
}

ExpressionPtr ExpressionParser::number_constant() {
  const Token& token = tokens_.take();
  const std::string& digits = token.text;
  const char* end = digits.data() + digits.size();
  if (token.kind == TokenKind::real) {
    double value = 0;
    if (std::from_chars(digits.data(), end, value).ec == std::errc::result_out_of_range) {
      value = digits.find("e-") != std::string::npos || digits.find("E-") != std::string::npos
                  ? 0.0
                  : std::numeric_limits<double>::infinity();
    }
    return make(Constant{value}, token.line);
  }
  const char prefix = digits.size() > 1 ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
  std::int64_t value = 0;
  const auto [last, error] = std::from_chars(digits.data() + (base == 10 ? 0 : 2), end, value, base);
  if (error != std::errc() || last != end) {
    throw LocatedError(fmt::format("the integer {} does not fit into 64 bits", digits), token.line);
  }
  return make(Constant{value}, token.line);
}

ExpressionPtr ExpressionParser::list_display() {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> items;
  while (!tokens_.at("]")) {
    items.push_back(expression());
    if (!tokens_.skip(",")) break;
  }
  tokens_.expect("]");
  const int depth = depth_of(items);
  return make(ListDisplay{false, std::move(items)}, line, depth);
}

ExpressionPtr ExpressionParser::dict_display() {
  const int line = tokens_.take().line;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
  int depth = 0;
  while (!tokens_.at("}")) {
    ExpressionPtr key = expression();
    tokens_.expect(":");
    ExpressionPtr value = expression();
    depth = std::max({depth, depth_of(key), depth_of(value)});
    items.emplace_back(std::move(key), std::move(value));
    if (!tokens_.skip(",")) break;
  }
  tokens_.expect("}");
  return make(DictDisplay{std::move(items)}, line, depth);
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    if (tokens_.at(".")) {
      node = attribute(std::move(node));
    } else if (tokens_.at("[")) {
      node = subscript(std::move(node));
    } else if (tokens_.at("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::filter_expression(ExpressionPtr node) {
  while (true) {
    if (tokens_.skip("|")) {
      FilterCall filter = filter_call();
      const int line = filter.line;
      const int depth = std::max(depth_of(node), depth_of(filter.arguments));
      node = make(Filter{std::move(node), std::move(filter)}, line, depth);
    } else if (tokens_.at_name("is")) {
      node = test(std::move(node));
    } else if (tokens_.at("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr node) {
  const int line = tokens_.take().line;
  const int depth = depth_of(node);
  if (tokens_.at(TokenKind::name)) {
    return make(GetAttribute{std::move(node), tokens_.take().text}, line, depth);
  }
  if (!tokens_.at(TokenKind::integer)) tokens_.fail("expected name or number");
  return make(GetItem{std::move(node), number_constant()}, line, depth);
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> items;
  int colons = 0;
  std::array<ExpressionPtr, 3> bounds;
  while (!tokens_.at("]")) {
    if (!items.empty()) tokens_.expect(",");
    if (!tokens_.at(":")) items.push_back(expression());
    if (!tokens_.at(":")) continue;
    if (items.size() > 1) tokens_.fail("a slice among several subscripts is not supported");
    if (!items.empty()) bounds[0] = std::move(items[0]);
    while (colons < 2 && tokens_.skip(":")) {
      ++colons;
      if (!tokens_.at(":") && !tokens_.at("]")) bounds[static_cast<std::size_t>(colons)] = expression();
    }
    break;
  }
  tokens_.expect("]");
  int depth = std::max(depth_of(node), depth_of(items));
  if (colons > 0) {
    for (const ExpressionPtr& bound : bounds) depth = std::max(depth, depth_of(bound));
    return make(GetSlice{std::move(node), std::move(bounds[0]), std::move(bounds[1]), std::move(bounds[2])}, line,
                depth);
  }
  ExpressionPtr index =
      items.size() == 1 ? std::move(items[0]) : make(ListDisplay{true, std::move(items)}, line, depth);
  depth = std::max(depth, depth_of(index));
  return make(GetItem{std::move(node), std::move(index)}, line, depth);
}

ExpressionPtr ExpressionParser::call(ExpressionPtr node) {
  const int line = tokens_.current().line;
  CallArguments arguments = call_arguments();
  const int depth = std::max(depth_of(node), depth_of(arguments));
  return make(Call{std::move(node), std::move(arguments)}, line, depth);
}

CallArguments ExpressionParser::call_arguments() {
  const int line = tokens_.current().line;
  tokens_.expect("(");
  CallArguments arguments;
  while (!tokens_.at(")")) {
    call_argument(arguments, line);
    if (!tokens_.skip(",")) break;
  }
  tokens_.expect(")");
  return arguments;
}

void ExpressionParser::call_argument(CallArguments& arguments, int line) {
  const auto ensure = [line](bool holds) {
    if (!holds) throw LocatedError("invalid syntax for function call expression", line);
  };
  if (tokens_.skip("*")) {
    ensure(arguments.sequence == nullptr && arguments.mapping == nullptr);
    arguments.sequence = expression();
  } else if (tokens_.skip("**")) {
    ensure(arguments.mapping == nullptr);
    arguments.mapping = expression();
  } else if (tokens_.at(TokenKind::name) && tokens_.look().is("=")) {
    ensure(arguments.mapping == nullptr);
    std::string name = tokens_.take().text;
    tokens_.expect("=");
    arguments.keywords.emplace_back(std::move(name), expression());
  } else {
    ensure(arguments.sequence == nullptr && arguments.mapping == nullptr && arguments.keywords.empty());
    arguments.positional.push_back(expression());
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect(TokenKind::name).text;
  while (tokens_.skip(".")) name += "." + tokens_.expect(TokenKind::name).text;
  return name;
}

FilterCall ExpressionParser::filter_call() {
  const int line = tokens_.current().line;
  std::string name = dotted_name();
  if (!has_filter(name) && conditional_ == 0) unknown_names_.push_back({"filter", name, line});
  CallArguments arguments;
  if (tokens_.at("(")) arguments = call_arguments();
  return {std::move(name), std::move(arguments), line};
}

std::vector<FilterCall> ExpressionParser::piped_filters() {
  std::vector<FilterCall> calls;
  while (tokens_.skip("|")) calls.push_back(filter_call());
  return calls;
}

bool ExpressionParser::at_test_argument() const {
  switch (tokens_.current().kind) {
    case TokenKind::name:
      return !tokens_.at_name("else") && !tokens_.at_name("or") && !tokens_.at_name("and");
    case TokenKind::string:
    case TokenKind::integer:
    case TokenKind::real:
      return true;
    default:
      return tokens_.at("[") || tokens_.at("{");
  }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr node) {
  const int line = tokens_.take().line;
  const bool negated = tokens_.skip_name("not");
  std::string name = dotted_name();
  if (!has_test(name) && conditional_ == 0) unknown_names_.push_back({"test", name, line});
  CallArguments arguments;
  if (tokens_.at("(")) {
    arguments = call_arguments();
  } else if (at_test_argument()) {
    if (tokens_.at_name("is")) tokens_.fail("You cannot chain multiple tests with is");
    arguments.positional.push_back(postfix(primary()));
  }
  const int depth = std::max(depth_of(node), depth_of(arguments));
  ExpressionPtr result = make(Test{std::move(node), std::move(name), std::move(arguments)}, line, depth);
  return negated ? make(Not{std::move(result)}, line, depth + 1) : std::move(result);
}

}  // namespace qpn8::jinja
