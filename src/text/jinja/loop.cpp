#include "text/jinja/loop.hpp"

#include <fmt/format.h>

#include "text/jinja/operators.hpp"

namespace qpn8::jinja {

Loop::Loop(Budget& budget, const Value& iterable, Condition condition, Recursion recursion, int depth0)
    : source_(budget, iterable),
      condition_(std::move(condition)),
      recursion_(std::move(recursion)),
      depth0_(depth0),
      value_depth_(iterable.depth()) {
  if (!condition_) length_ = source_.size();
}

std::optional<Value> Loop::take() {
  if (drained_position_ < drained_.size()) return drained_[drained_position_++];
  while (auto item = source_.next()) {
    if (!condition_ || condition_(*item)) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& Loop::peek() {
  if (!has_peeked_) {
    after_ = take();
    has_peeked_ = true;
  }
  return after_;
}

std::optional<Value> Loop::next() {
  std::optional<Value> item = has_peeked_ ? std::exchange(after_, std::nullopt) : take();
  has_peeked_ = false;
  if (!item) return std::nullopt;
  ++index0_;
  before_ = std::exchange(current_, item);
  return item;
}

std::int64_t Loop::length() {
  if (!length_) {
    std::vector<Value> rest;
    while (auto item = take()) rest.push_back(std::move(*item));
    length_ = static_cast<std::int64_t>(rest.size()) + index0_ + 1 + static_cast<std::int64_t>(after_.has_value());
    drained_ = std::move(rest);
    drained_position_ = 0;
  }
  return *length_;
}

void Loop::append_repr(TextBuilder& out) { out.append(fmt::format("<LoopContext {}/{}>", index0_ + 1, length())); }

std::optional<Value> Loop::attribute(Runtime& /*runtime*/, std::string_view name) {
  if (name == "index") return index0_ + 1;
  if (name == "index0") return index0_;
  if (name == "first") return index0_ == 0;
  if (name == "last") return !peek().has_value();
  if (name == "length") return length();
  if (name == "revindex") return length() - index0_;
  if (name == "revindex0") return length() - index0_ - 1;
  if (name == "depth") return depth0_ + 1;
  if (name == "depth0") return depth0_;
  if (name == "previtem") return index0_ == 0 ? make_undefined("there is no previous item") : *before_;
  if (name == "nextitem") return peek() ? *peek() : make_undefined("there is no next item");
  if (name != "cycle" && name != "changed") return std::nullopt;
  return make_function(
      std::string(name),
      [self = shared_from_this(), is_cycle = name == "cycle"](Runtime& runtime, const Arguments& arguments) -> Value {
        if (is_cycle) return self->cycle(arguments);
        return self->changed(runtime, arguments);
      },
      value_depth_);
}

Value Loop::call(Runtime& /*runtime*/, const Arguments& arguments) {
  const BoundArguments bound("loop()", arguments, {"iterable"}, 1);
  if (!recursion_) throw TemplateError("The loop must have the 'recursive' marker to be called recursively.");
  return recursion_(bound[0], depth0_ + 1);
}

Value Loop::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) throw TemplateError("no items for cycling given");
  return arguments.positional[static_cast<std::size_t>(index0_) % arguments.positional.size()];
}

bool Loop::changed(Runtime& runtime, const Arguments& arguments) {
  Value values = make_tuple(runtime.budget(), arguments.positional);
  if (last_changed_ && equals(runtime.budget(), *last_changed_, values)) return false;
  // A template may ask about the loop itself, which makes a cycle.
  if (!last_changed_) runtime.adopt(shared_from_this());
  last_changed_ = std::move(values);
  return true;
}

}  // namespace qpn8::jinja
