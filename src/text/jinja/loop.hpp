#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/object.hpp"

namespace qpn8::jinja {

/// The variable `loop` of a for loop, which also hands out the loop's items. It looks ahead by one item only where
/// the template asks for what comes next, since a loop's condition may depend on what its body does.
class Loop final : public Object, public Cyclic, public std::enable_shared_from_this<Loop> {
 public:
  /// Whether the loop takes an item; empty to take all.
  using Condition = std::function<bool(const Value&)>;
  /// Renders the loop's body over other items, one level deeper; empty where the loop is not recursive.
  using Recursion = std::function<Value(const Value& iterable, int depth0)>;

  Loop(Budget& budget, const Value& iterable, Condition condition, Recursion recursion, int depth0);

  /// Moves on to the next item.
  std::optional<Value> next();

  std::string_view type_name() const override { return "LoopContext"; }
  std::string_view qualified_name() const override { return "jinja2.runtime.LoopContext"; }
  void append_repr(TextBuilder& out) override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override;
  int depth() const override { return value_depth_; }
  void clear() override { last_changed_.reset(); }

 private:
  std::optional<Value> take();
  const std::optional<Value>& peek();
  std::int64_t length();
  Value cycle(const Arguments& arguments) const;
  bool changed(Runtime& runtime, const Arguments& arguments);

  ItemSource source_;
  Condition condition_;
  Recursion recursion_;
  int depth0_;
  int value_depth_;
  std::int64_t index0_ = -1;
  std::optional<std::int64_t> length_;
  std::vector<Value> drained_;  ///< items taken early, to count them; in order
  std::size_t drained_position_ = 0;
  bool has_peeked_ = false;
  std::optional<Value> after_;
  std::optional<Value> current_;
  std::optional<Value> before_;
  std::optional<Value> last_changed_;
};

}  // namespace qpn8::jinja
