#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "text/jinja/object.hpp"

namespace qpn8::jinja {

/// The variables of one scope. Macros keep the scope in which they were defined, and so see later changes to it.
/// Names must outlive the scope; those of the syntax tree do.
class Scope final : public Cyclic {
 public:
  explicit Scope(std::shared_ptr<const Scope> parent) : parent_(std::move(parent)) {}

  /// In this scope or one around it; nullptr if there is none.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
      const auto found = scope->variables_.find(name);
      if (found != scope->variables_.end()) return &found->second;
    }
    return nullptr;
  }
  void set(std::string_view name, Value value) { variables_.insert_or_assign(name, std::move(value)); }
  void clear() override { variables_.clear(); }

 private:
  std::shared_ptr<const Scope> parent_;
  std::unordered_map<std::string_view, Value> variables_;
};

}  // namespace qpn8::jinja
