#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/operators.hpp"
#include "text/jinja/value.hpp"

// The syntax tree. Its depth is bounded by the parser, so that walking and destroying it may recurse.

namespace qpn8::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<Statement>;

// --- expressions ----------------------------------------------------------------------------------------------------

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
  ExpressionPtr sequence;  ///< *arguments, or null
  ExpressionPtr mapping;   ///< **arguments, or null
};

struct Constant {
  Value value;
};
struct Name {
  std::string name;
};
struct GetAttribute {
  ExpressionPtr object;
  std::string name;
};
struct GetItem {
  ExpressionPtr object;
  ExpressionPtr index;
};
struct GetSlice {
  ExpressionPtr object;
  ExpressionPtr start, stop, step;  ///< null where left out
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
/// A filter without its input: what {% filter %} and a block {% set %} apply to their body.
struct FilterCall {
  std::string name;
  CallArguments arguments;
  int line;
};
struct Filter {
  ExpressionPtr input;
  FilterCall call;
};
struct Test {
  ExpressionPtr subject;
  std::string name;
  CallArguments arguments;
};
struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};
struct Not {
  ExpressionPtr operand;
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left, right;
};
struct Logical {
  bool is_and;
  ExpressionPtr left, right;
};
struct Comparison {
  ExpressionPtr first;
  std::vector<std::pair<CompareOperator, ExpressionPtr>> rest;
};
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
struct Conditional {
  ExpressionPtr test, yes;
  ExpressionPtr no;  ///< or null
};
struct ListDisplay {
  bool is_tuple;
  std::vector<ExpressionPtr> items;
};
struct DictDisplay {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
};

struct Expression {
  using Node = std::variant<Constant, Name, GetAttribute, GetItem, GetSlice, Call, Filter, Test, Unary, Not, Binary,
                            Logical, Comparison, Concatenation, Conditional, ListDisplay, DictDisplay>;
  Node node;
  int line;
  int depth;  ///< of the tree below, 1 for a leaf
};

// --- statements -----------------------------------------------------------------------------------------------------

/// Where an assignment goes.
struct Target {
  struct Attribute {
    std::string object, name;
  };
  std::variant<std::string, Attribute, std::vector<Target>> place;
};

struct Data {
  std::string text;
};
struct Print {
  ExpressionPtr value;
};
struct For {
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr condition;  ///< or null
  bool recursive;
  Body body, otherwise;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  std::vector<FilterCall> filters;
  Body body;
};
struct FilterBlock {
  std::vector<FilterCall> filters;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> bindings;
  Body body;
};
/// What a macro and a call block share: parameters and a body that is rendered to a text when called.
struct Procedure {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  ///< of the last parameters
  bool uses_caller, uses_varargs, uses_kwargs;
  Body body;
};
struct Macro {
  Procedure procedure;
};
struct CallBlock {
  Procedure caller;
  ExpressionPtr call;  ///< its node is a Call
};
/// {% generation %}: rendered as it is, in a scope of its own.
struct Generation {
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  using Node = std::variant<Data, Print, For, If, Set, SetBlock, FilterBlock, With, Macro, CallBlock, Generation, Break,
                            Continue>;
  Node node;
  int line;
};

}  // namespace qpn8::jinja
