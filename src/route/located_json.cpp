#include "route/located_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/json_events.hpp"
#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

// Builds the tree; what is open is a node of its own until it ends.
class NodeBuilder {
 public:
  void scalar(std::uint64_t value, JsonPosition& position) {
    if (std::in_range<std::int64_t>(value)) {
      scalar(static_cast<std::int64_t>(value), position);
    } else {
      scalar(static_cast<double>(value), position);
    }
  }

  template <class Value>
  void scalar(Value&& value, JsonPosition& position) {
    JsonNode node = new_node(JsonNode::Kind::scalar, position);
    node.scalar = std::forward<Value>(value);
    add(std::move(node));
  }

  void key(std::string&& name, JsonPosition& position) { pending_ = {std::move(name), position.line()}; }

  void open(bool object, JsonPosition& position) {
    open_.push_back(new_node(object ? JsonNode::Kind::object : JsonNode::Kind::array, position));
  }

  void close() {
    JsonNode node = std::move(open_.back());
    open_.pop_back();
    add(std::move(node));
  }

  JsonNode take() { return std::move(root_); }

 private:
  JsonNode new_node(JsonNode::Kind kind, JsonPosition& position) {
    JsonNode node;
    node.kind = kind;
    node.line = pending_.second != 0 ? pending_.second : position.line();
    node.key = std::exchange(pending_.first, {});
    pending_.second = 0;
    return node;
  }

  void add(JsonNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().children.push_back(std::move(node));
    }
  }

  std::pair<std::string, std::int64_t> pending_;  // key whose value comes next, and its line; 0 if there is none
  std::vector<JsonNode> open_;                    // arrays and objects that have not ended, outermost first
  JsonNode root_;
};

std::string shown(const JsonNode& node) {
  if (node.kind == JsonNode::Kind::object) return "an object";
  if (node.kind == JsonNode::Kind::array) return "an array";
  return std::visit([](const auto& scalar) { return describe(nlohmann::json(scalar)); }, node.scalar);
}

std::string joined(std::initializer_list<std::string_view> names, std::initializer_list<std::string_view> more = {}) {
  std::vector<std::string_view> all(names);
  all.insert(all.end(), more);
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

JsonNode parse_located_json(std::string_view text, const std::string& file, const JsonLimits& limits) {
  NodeBuilder builder;
  parse_json_events(text, file, 1, limits, builder);
  return builder.take();
}

const JsonNode* find_member(const JsonNode& object, std::string_view key) {
  const auto found = std::find_if(object.children.begin(), object.children.end(),
                                  [&](const JsonNode& child) { return child.key == key; });
  return found == object.children.end() ? nullptr : &*found;
}

const JsonNode& member(const JsonNode& object, std::string_view key) {
  const JsonNode* found = find_member(object, key);
  check(found != nullptr, "expect_object() has seen the key");
  return *found;
}

void NodeReader::fail(const JsonNode& node, const std::string& message) const {
  throw Error(Error::bad_file, fmt::format("{}:{}: {}", file_, node.line, message));
}

void NodeReader::fail_value(const JsonNode& node, std::string_view expected) const {
  const std::string name = node.key.empty() ? "an element" : in_quotes(node.key);
  fail(node, fmt::format("{} is {}, expected {}", name, shown(node), expected));
}

void NodeReader::expect_object(const JsonNode& node, std::string_view what,
                               std::initializer_list<std::string_view> required,
                               std::initializer_list<std::string_view> optional) const {
  if (node.kind != JsonNode::Kind::object) fail_value(node, fmt::format("{}, which is an object", what));
  const auto lists = [](std::initializer_list<std::string_view> names, const std::string& key) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  for (const JsonNode& child : node.children) {
    if (lists(required, child.key) || lists(optional, child.key)) continue;
    fail(child, fmt::format("unknown key {}; {} has {}", in_quotes(child.key), what, joined(required, optional)));
  }
  for (const std::string_view key : required) {
    if (find_member(node, key) == nullptr) fail(node, fmt::format("{} lacks \"{}\"", what, key));
  }
}

const std::vector<JsonNode>& NodeReader::elements(const JsonNode& node) const {
  if (node.kind != JsonNode::Kind::array) fail_value(node, "an array");
  return node.children;
}

const std::string& NodeReader::text(const JsonNode& node) const {
  const auto* value = std::get_if<std::string>(&node.scalar);
  if (value == nullptr || value->empty()) fail_value(node, "a text that is not empty");
  return *value;
}

bool NodeReader::boolean(const JsonNode& node) const {
  const auto* value = std::get_if<bool>(&node.scalar);
  if (value == nullptr) fail_value(node, "true or false");
  return *value;
}

std::int64_t NodeReader::integer(const JsonNode& node, std::int64_t least, std::int64_t most) const {
  const auto* value = std::get_if<std::int64_t>(&node.scalar);
  if (value == nullptr || *value < least || *value > most) {
    fail_value(node, fmt::format("an integer from {} to {}", least, most));
  }
  return *value;
}

std::size_t NodeReader::choice(const JsonNode& node, std::initializer_list<std::string_view> names) const {
  const auto* value = std::get_if<std::string>(&node.scalar);
  const auto* const found = value == nullptr ? names.end() : std::find(names.begin(), names.end(), *value);
  if (found == names.end()) fail_value(node, fmt::format("one of {}", joined(names)));
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace qpn8
