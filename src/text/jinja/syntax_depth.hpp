#pragma once

#include <algorithm>
#include <vector>

#include "text/jinja/ast.hpp"

// How deep the trees are that become children of a new node.

namespace qpn8::jinja {

inline int depth_of(const ExpressionPtr& expression) { return expression == nullptr ? 0 : expression->depth; }

inline int depth_of(const std::vector<ExpressionPtr>& expressions) {
  int depth = 0;
  for (const ExpressionPtr& expression : expressions) depth = std::max(depth, depth_of(expression));
  return depth;
}

inline int depth_of(const CallArguments& arguments) {
  int depth = std::max({depth_of(arguments.positional), depth_of(arguments.sequence), depth_of(arguments.mapping)});
  for (const auto& [name, value] : arguments.keywords) depth = std::max(depth, depth_of(value));
  return depth;
}

}  // namespace qpn8::jinja
