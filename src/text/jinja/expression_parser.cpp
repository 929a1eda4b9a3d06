#include "text/jinja/expression_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/syntax_depth.hpp"

namespace qpn8::jinja {
namespace {

template <class Operator>
struct Symbol {
  std::string_view text;
  Operator op;
};

constexpr std::array<Symbol<BinaryOperator>, 2> kSums = {{{"+", BinaryOperator::add}, {"-", BinaryOperator::subtract}}};
constexpr std::array<Symbol<BinaryOperator>, 4> kProducts = {{{"*", BinaryOperator::multiply},
                                                              {"/", BinaryOperator::divide},
                                                              {"//", BinaryOperator::floor_divide},
                                                              {"%", BinaryOperator::modulo}}};
constexpr std::array<Symbol<CompareOperator>, 6> kComparisons = {{{"==", CompareOperator::equal},
                                                                  {"!=", CompareOperator::not_equal},
                                                                  {"<", CompareOperator::less},
                                                                  {"<=", CompareOperator::less_equal},
                                                                  {">", CompareOperator::greater},
                                                                  {">=", CompareOperator::greater_equal}}};

template <class Operator, std::size_t n>
const Symbol<Operator>* find_symbol(const std::array<Symbol<Operator>, n>& symbols, const Token& token) {
  const auto* found =
      std::find_if(symbols.begin(), symbols.end(), [&](const Symbol<Operator>& s) { return token.is(s.text); });
  return found == symbols.end() ? nullptr : found;
}

}  // namespace

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (parser.nesting_ >= kMaxSyntaxNesting) {
    parser.tokens_.fail(fmt::format("brackets and tags are nested more than {} levels deep", kMaxSyntaxNesting));
  }
  ++parser.nesting_;
}

ExpressionPtr ExpressionParser::make(Expression::Node node, int line, int depth) const {
  if (depth >= kMaxTreeDepth) {
    throw LocatedError(fmt::format("the expression is nested or chained more than {} levels deep", kMaxTreeDepth),
                       line);
  }
  return std::make_unique<Expression>(Expression{std::move(node), line, depth + 1});
}

void ExpressionParser::check_names() const {
  if (unknown_names_.empty()) return;
  const UnknownName& unknown = unknown_names_.front();
  throw LocatedError(fmt::format("No {} named '{}'.", unknown.kind, unknown.name), unknown.line);
}

ExpressionPtr ExpressionParser::expression(bool with_conditional) {
  const Level level(*this);
  return with_conditional ? conditional() : logical_or();
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return tokens_.at(TokenKind::variable_end) || tokens_.at(TokenKind::block_end) || tokens_.at(")") ||
         (!end_name.empty() && tokens_.at_name(end_name));
}

ExpressionPtr ExpressionParser::tuple(bool with_conditional, std::string_view end_name, bool may_be_empty) {
  const int line = tokens_.current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!at_tuple_end(end_name)) {
    items.push_back(expression(with_conditional));
    if (!tokens_.skip(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && items.size() == 1) return std::move(items.front());
  if (items.empty() && !may_be_empty) {
    tokens_.fail(fmt::format("Expected an expression, got '{}'", tokens_.current().description()));
  }
  const int depth = depth_of(items);
  return make(ListDisplay{true, std::move(items)}, line, depth);
}

ExpressionPtr ExpressionParser::conditional() {
  const int line = tokens_.current().line;
  const std::size_t unknown = unknown_names_.size();
  ExpressionPtr yes = logical_or();
  while (tokens_.skip_name("if")) {
    unknown_names_.resize(unknown);
    enter_conditional();
    ExpressionPtr condition = logical_or();
    ExpressionPtr no;
    if (tokens_.skip_name("else")) {
      const Level level(*this);
      no = conditional();
    }
    leave_conditional();
    const int depth = std::max({depth_of(condition), depth_of(yes), depth_of(no)});
    yes = make(Conditional{std::move(condition), std::move(yes), std::move(no)}, line, depth);
  }
  return yes;
}

ExpressionPtr ExpressionParser::logical_or() {
  const int line = tokens_.current().line;
  ExpressionPtr left = logical_and();
  while (tokens_.skip_name("or")) {
    ExpressionPtr right = logical_and();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(Logical{false, std::move(left), std::move(right)}, line, depth);
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  const int line = tokens_.current().line;
  ExpressionPtr left = logical_not();
  while (tokens_.skip_name("and")) {
    ExpressionPtr right = logical_not();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(Logical{true, std::move(left), std::move(right)}, line, depth);
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  const int line = tokens_.current().line;
  if (!tokens_.skip_name("not")) return comparison();
  const Level level(*this);
  ExpressionPtr operand = logical_not();
  const int depth = depth_of(operand);
  return make(Not{std::move(operand)}, line, depth);
}

bool ExpressionParser::comparison_operator(CompareOperator& op) {
  if (const auto* symbol = find_symbol(kComparisons, tokens_.current())) {
    op = symbol->op;
    tokens_.take();
    return true;
  }
  if (tokens_.skip_name("in")) {
    op = CompareOperator::in;
    return true;
  }
  if (tokens_.at_name("not") && tokens_.look().is_name("in")) {
    tokens_.take();
    tokens_.take();
    op = CompareOperator::not_in;
    return true;
  }
  return false;
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = tokens_.current().line;
  ExpressionPtr first = sum();
  int depth = depth_of(first);
  std::vector<std::pair<CompareOperator, ExpressionPtr>> rest;
  for (CompareOperator op{}; comparison_operator(op);) {
    rest.emplace_back(op, sum());
    depth = std::max(depth, depth_of(rest.back().second));
  }
  if (rest.empty()) return first;
  return make(Comparison{std::move(first), std::move(rest)}, line, depth);
}

ExpressionPtr ExpressionParser::sum() {
  const int line = tokens_.current().line;
  ExpressionPtr left = concatenation();
  while (const auto* symbol = find_symbol(kSums, tokens_.current())) {
    tokens_.take();
    ExpressionPtr right = concatenation();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(Binary{symbol->op, std::move(left), std::move(right)}, line, depth);
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = tokens_.current().line;
  std::vector<ExpressionPtr> parts;
  do {
    parts.push_back(product());
  } while (tokens_.skip("~"));
  if (parts.size() == 1) return std::move(parts.front());
  const int depth = depth_of(parts);
  return make(Concatenation{std::move(parts)}, line, depth);
}

ExpressionPtr ExpressionParser::product() {
  const int line = tokens_.current().line;
  ExpressionPtr left = power();
  while (const auto* symbol = find_symbol(kProducts, tokens_.current())) {
    tokens_.take();
    ExpressionPtr right = power();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(Binary{symbol->op, std::move(left), std::move(right)}, line, depth);
  }
  return left;
}

// Unlike in Python, ** groups from the left here, as it does in Jinja.
ExpressionPtr ExpressionParser::power() {
  const int line = tokens_.current().line;
  ExpressionPtr left = unary();
  while (tokens_.skip("**")) {
    ExpressionPtr right = unary();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(Binary{BinaryOperator::power, std::move(left), std::move(right)}, line, depth);
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filter) {
  const int line = tokens_.current().line;
  ExpressionPtr node;
  if (tokens_.at("-") || tokens_.at("+")) {
    const Level level(*this);
    const UnaryOperator op = tokens_.take().is("-") ? UnaryOperator::minus : UnaryOperator::plus;
    ExpressionPtr operand = unary(false);
    const int depth = depth_of(operand);
    node = make(Unary{op, std::move(operand)}, line, depth);
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filter_expression(std::move(node)) : std::move(node);
}

}  // namespace qpn8::jinja
