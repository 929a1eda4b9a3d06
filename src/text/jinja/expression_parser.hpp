#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.hpp"
#include "text/jinja/token_stream.hpp"

namespace qpn8::jinja {

/// Deepest nesting of brackets and tags in each other, and deepest tree (a chain of operators is one too).
inline constexpr int kMaxSyntaxNesting = 100;
inline constexpr int kMaxTreeDepth = 300;

/// The names that a macro's body sees only if it mentions them.
struct SpecialNames {
  bool caller = false;
  bool varargs = false;
  bool kwargs = false;
};

/// Parses expressions with Jinja's grammar: its precedences, and its places for filters, tests and conditionals.
class ExpressionParser {
 public:
  /// Constants are charged to the budget, which must outlive the tree.
  ExpressionParser(TokenStream& tokens, Budget& budget) : tokens_(tokens), budget_(budget) {}

  ExpressionPtr expression(bool with_conditional = true);

  /// One expression, or a tuple of several without brackets. It ends at the end of the tag, at `)` or at the name.
  ExpressionPtr tuple(bool with_conditional = true, std::string_view end_name = "", bool may_be_empty = false);

  /// A name and perhaps arguments.
  FilterCall filter_call();

  /// As many `| filter` as there are.
  std::vector<FilterCall> piped_filters();

  /// Between the two, filters and tests that do not exist are an error only when they are used: what a condition
  /// guards is not always meant for this implementation.
  void enter_conditional() { ++conditional_; }
  void leave_conditional() { --conditional_; }

  /// LocatedError for the first filter or test that does not exist and is not guarded.
  void check_names() const;

  /// The special names seen since they were last exchanged.
  SpecialNames exchange_special_names(SpecialNames names) { return std::exchange(special_names_, names); }

  /// One level of brackets or tags; LocatedError beyond kMaxSyntaxNesting.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.nesting_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  struct UnknownName {
    std::string_view kind;
    std::string name;
    int line;
  };

  /// `depth` is that of the deepest child.
  ExpressionPtr make(Expression::Node node, int line, int depth = 0) const;
  ExpressionPtr conditional();
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr comparison();
  bool comparison_operator(CompareOperator& op);
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter = true);
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr string_constant();
  ExpressionPtr number_constant();
  ExpressionPtr list_display();
  ExpressionPtr dict_display();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filter_expression(ExpressionPtr node);
  ExpressionPtr attribute(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr test(ExpressionPtr node);
  CallArguments call_arguments();
  void call_argument(CallArguments& arguments, int line);
  std::string dotted_name();
  bool at_tuple_end(std::string_view end_name) const;
  bool at_test_argument() const;

  TokenStream& tokens_;
  Budget& budget_;
  int nesting_ = 0;
  int conditional_ = 0;
  std::vector<UnknownName> unknown_names_;
  SpecialNames special_names_;
};

}  // namespace qpn8::jinja
