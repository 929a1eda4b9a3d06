#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/object.hpp"

namespace qpn8::jinja {

/// A namespace(): the one value that a template can change, and so carry results out of loops with.
class Namespace final : public Object, public Cyclic {
 public:
  explicit Namespace(Budget& budget) : attributes_(budget) {}

  std::string_view type_name() const override { return "Namespace"; }
  std::string_view qualified_name() const override { return "jinja2.utils.Namespace"; }
  void append_repr(TextBuilder& out) override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  void set(Budget& budget, const Value& name, Value value) { attributes_.set(budget, name, std::move(value)); }
  void clear() override { attributes_.clear(); }

 private:
  Dict attributes_;
};

/// The functions that every template sees: range, dict, namespace, cycler, joiner, raise_exception and strftime_now.
std::optional<Value> find_global(std::string_view name);

}  // namespace qpn8::jinja
