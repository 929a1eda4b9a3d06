#include "text/jinja/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

#include "text/jinja/expression_parser.hpp"

namespace qpn8::jinja {
namespace {

// Parts of Jinja that need more than one template or change how output is escaped.
constexpr std::array<std::string_view, 6> kUnsupportedTags = {"extends", "block", "include",
                                                              "import",  "from",  "autoescape"};

class Parser {
 public:
  Parser(std::string_view source, Budget& budget) : tokens_(tokenize(source)), expressions_(tokens_, budget) {}

  Body run() {
    Body body = statements({});
    expressions_.check_names();
    return body;
  }

 private:
  using EndTags = std::initializer_list<std::string_view>;

  // --- bodies -----------------------------------------------------------------------------------------------------

  // Statements up to one of the end tags, whose name is then the current token; or up to the end of the template.
  Body statements(EndTags ends) {
    const ExpressionParser::Level level(expressions_);
    Body body;
    while (!tokens_.at(TokenKind::end)) {
      const int line = tokens_.current().line;
      if (tokens_.at(TokenKind::data)) {
        body.push_back({Data{tokens_.take().text}, line});
      } else if (tokens_.at(TokenKind::variable_begin)) {
        tokens_.take();
        body.push_back({Print{expressions_.tuple()}, line});
        tokens_.expect(TokenKind::variable_end);
      } else {
        tokens_.expect(TokenKind::block_begin);
        if (at_any(ends)) return body;
        statement(body, ends);
        tokens_.expect(TokenKind::block_end);
      }
    }
    if (ends.size() != 0) fail_unclosed("Unexpected end of template.", ends);
    return body;
  }

  bool at_any(EndTags ends) const {
    return std::any_of(ends.begin(), ends.end(), [this](std::string_view end) { return tokens_.at_name(end); });
  }

  [[noreturn]] void fail_unclosed(std::string message, EndTags ends) const {
    if (ends.size() != 0) {
      message += " Jinja was looking for the following tags: ";
      for (const std::string_view* end = ends.begin(); end != ends.end(); ++end) {
        message += fmt::format("{}'{}'", end == ends.begin() ? "" : " or ", *end);
      }
      message += ".";
    }
    if (!open_tags_.empty()) {
      message += fmt::format(" The innermost block that needs to be closed is '{}'.", open_tags_.back());
    }
    tokens_.fail(message);
  }

  // A body up to the one end tag, which is taken.
  Body body_until(std::string_view end) {
    begin_body();
    Body body = statements({end});
    tokens_.take();
    return body;
  }

  void begin_body() {
    tokens_.skip(":");
    tokens_.expect(TokenKind::block_end);
  }

  // --- statements -------------------------------------------------------------------------------------------------

  void statement(Body& body, EndTags ends) {
    using Parse = Statement::Node (Parser::*)();
    struct Tag {
      std::string_view name;
      Parse parse;
    };
    static constexpr std::array<Tag, 11> kTags = {{{"for", &Parser::for_statement},
                                                   {"if", &Parser::if_statement},
                                                   {"set", &Parser::set_statement},
                                                   {"macro", &Parser::macro_statement},
                                                   {"call", &Parser::call_statement},
                                                   {"filter", &Parser::filter_statement},
                                                   {"with", &Parser::with_statement},
                                                   {"generation", &Parser::generation_statement},
                                                   {"break", &Parser::break_statement},
                                                   {"continue", &Parser::continue_statement},
                                                   {"print", nullptr}}};
    const int line = tokens_.current().line;
    if (!tokens_.at(TokenKind::name)) tokens_.fail("tag name expected");
    const std::string name = tokens_.current().text;
    const auto* tag = std::find_if(kTags.begin(), kTags.end(), [&](const Tag& t) { return t.name == name; });
    if (tag == kTags.end()) fail_unknown_tag(name, ends);
    tokens_.take();
    if (tag->parse == nullptr) {
      print_statement(body, line);
      return;
    }
    open_tags_.push_back(name);
    body.push_back({(this->*tag->parse)(), line});
    open_tags_.pop_back();
  }

  [[noreturn]] void fail_unknown_tag(const std::string& name, EndTags ends) const {
    if (std::find(kUnsupportedTags.begin(), kUnsupportedTags.end(), name) != kUnsupportedTags.end()) {
      tokens_.fail(fmt::format("the tag '{}' is not supported in a chat template", name));
    }
    fail_unclosed(fmt::format("Encountered unknown tag '{}'.", name), ends);
  }

  void print_statement(Body& body, int line) {
    for (bool first = true; !tokens_.at(TokenKind::block_end); first = false) {
      if (!first) tokens_.expect(",");
      body.push_back({Print{expressions_.expression()}, line});
    }
  }

  Statement::Node for_statement() {
    For node;
    ++open_loops_;
    node.target = target("in", false);
    tokens_.expect_name("in");
    node.iterable = expressions_.tuple(false, "recursive");
    if (tokens_.skip_name("if")) node.condition = expressions_.expression();
    node.recursive = tokens_.skip_name("recursive");
    begin_body();
    node.body = statements({"endfor", "else"});
    --open_loops_;
    if (tokens_.take().is_name("else")) node.otherwise = body_until("endfor");
    return node;
  }

  Statement::Node if_statement() {
    If node;
    expressions_.enter_conditional();
    while (true) {
      ExpressionPtr condition = expressions_.tuple(false);
      begin_body();
      node.branches.emplace_back(std::move(condition), statements({"elif", "else", "endif"}));
      const Token& end = tokens_.take();
      if (end.is_name("elif")) continue;
      if (end.is_name("else")) node.otherwise = body_until("endif");
      break;
    }
    expressions_.leave_conditional();
    return node;
  }

  Statement::Node set_statement() {
    Target place = target("", true);
    if (tokens_.skip("=")) return Set{std::move(place), expressions_.tuple()};
    std::vector<FilterCall> filters = expressions_.piped_filters();
    return SetBlock{std::move(place), std::move(filters), body_until("endset")};
  }

  Statement::Node filter_statement() {
    std::vector<FilterCall> filters;
    filters.push_back(expressions_.filter_call());
    for (FilterCall& filter : expressions_.piped_filters()) filters.push_back(std::move(filter));
    return FilterBlock{std::move(filters), body_until("endfilter")};
  }

  Statement::Node with_statement() {
    With node;
    while (!tokens_.at(TokenKind::block_end)) {
      if (!node.bindings.empty()) tokens_.expect(",");
      Target place = target("", false);
      tokens_.expect("=");
      node.bindings.emplace_back(std::move(place), expressions_.expression());
    }
    node.body = body_until("endwith");
    return node;
  }

  Statement::Node macro_statement() {
    Procedure procedure{};
    procedure.name = assignable_name();
    signature(procedure);
    procedure_body(procedure, "endmacro");
    return Macro{std::move(procedure)};
  }

  Statement::Node call_statement() {
    CallBlock node{};
    node.caller.name = "caller";
    if (tokens_.at("(")) signature(node.caller);
    node.call = expressions_.expression();
    if (!std::holds_alternative<Call>(node.call->node)) tokens_.fail("expected call");
    procedure_body(node.caller, "endcall");
    return node;
  }

  Statement::Node generation_statement() {
    const int loops = std::exchange(open_loops_, 0);
    Generation node{body_until("endgeneration")};
    open_loops_ = loops;
    return node;
  }

  Statement::Node break_statement() {
    check_in_loop("break");
    return Break{};
  }

  Statement::Node continue_statement() {
    check_in_loop("continue");
    return Continue{};
  }

  void check_in_loop(std::string_view tag) const {
    if (open_loops_ == 0) tokens_.fail(fmt::format("'{}' outside of a loop", tag));
  }

  // --- parts of statements ----------------------------------------------------------------------------------------

  void signature(Procedure& procedure) {
    tokens_.expect("(");
    while (!tokens_.at(")")) {
      if (!procedure.parameters.empty()) tokens_.expect(",");
      procedure.parameters.push_back(assignable_name());
      if (tokens_.skip("=")) {
        procedure.defaults.push_back(expressions_.expression());
      } else if (!procedure.defaults.empty()) {
        tokens_.fail("non-default argument follows default argument");
      }
    }
    tokens_.take();
  }

  void procedure_body(Procedure& procedure, std::string_view end) {
    const int loops = std::exchange(open_loops_, 0);
    const SpecialNames outer = expressions_.exchange_special_names({});
    procedure.body = body_until(end);
    const SpecialNames used = expressions_.exchange_special_names({});
    open_loops_ = loops;
    expressions_.exchange_special_names(
        {outer.caller || used.caller, outer.varargs || used.varargs, outer.kwargs || used.kwargs});

    const auto is_parameter = [&](std::string_view name) {
      return std::find(procedure.parameters.begin(), procedure.parameters.end(), name) != procedure.parameters.end();
    };
    procedure.uses_caller = used.caller && !is_parameter("caller");
    procedure.uses_varargs = used.varargs && !is_parameter("varargs");
    procedure.uses_kwargs = used.kwargs && !is_parameter("kwargs");
  }

  std::string assignable_name() {
    std::string name = tokens_.expect(TokenKind::name).text;
    constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none", "True", "False", "None"};
    if (std::find(kConstants.begin(), kConstants.end(), name) != kConstants.end()) {
      tokens_.fail(fmt::format("can't assign to '{}'", name));
    }
    if (name == "loop" && open_loops_ > 0) {
      tokens_.fail("Can't assign to special loop variable in for-loop target");
    }
    return name;
  }

  // One target or several with commas, up to the end of the tag, a `)`, a `=` or the name.
  Target target(std::string_view end_name, bool attributes) {
    const ExpressionParser::Level level(expressions_);
    std::vector<Target> targets;
    bool is_tuple = false;
    while (!tokens_.at(TokenKind::block_end) && !tokens_.at(")") && !tokens_.at_name(end_name)) {
      targets.push_back(single_target(attributes));
      if (!tokens_.skip(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && targets.size() == 1) return std::move(targets.front());
    if (targets.empty()) {
      tokens_.fail(fmt::format("Expected an expression, got '{}'", tokens_.current().description()));
    }
    return {std::move(targets)};
  }

  Target single_target(bool attributes) {
    if (tokens_.skip("(")) {
      Target inside = target("", false);
      tokens_.expect(")");
      return inside;
    }
    if (!tokens_.at(TokenKind::name)) {
      tokens_.fail(fmt::format("can't assign to '{}'", tokens_.current().description()));
    }
    std::string name = assignable_name();
    if (!attributes || !tokens_.skip(".")) return {std::move(name)};
    return {Target::Attribute{std::move(name), tokens_.expect(TokenKind::name).text}};
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  std::vector<std::string> open_tags_;
  int open_loops_ = 0;
};

}  // namespace

Body parse(std::string_view source, Budget& budget) { return Parser(source, budget).run(); }

}  // namespace qpn8::jinja
