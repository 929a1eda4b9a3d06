#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/jinja/ast.hpp"
#include "text/jinja/budget.hpp"
#include "text/jinja/lexer.hpp"

namespace qpn8::jinja {

/// A compiled template. Immutable; render is thread-safe.
class Template {
 public:
  /// LocatedError, which knows its line, for what cannot be compiled.
  explicit Template(std::string_view source, const Limits& limits = {});

  /// LocatedError with the line where the rendering failed. `variables` is an object.
  std::string render(const nlohmann::ordered_json& variables, const Limits& limits = {}) const;

 private:
  std::unique_ptr<Budget> constants_;  ///< what the tree's constants are charged to, so it must outlive it
  Body body_;
};

/// TemplateError if it nests too deeply, or holds text that is not UTF-8 or an integer beyond 64 bits with a sign.
Value from_json(Budget& budget, const nlohmann::ordered_json& json);

}  // namespace qpn8::jinja
