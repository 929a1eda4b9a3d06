#include "route/located_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

[[noreturn]] void fail_at(const std::string& file, int line, const std::string& message) {
  throw Error(Error::bad_file, fmt::format("{}:{}: {}", file, line, message));
}

// The parser tells its events but not where they are. It reads one character at a time and never more than one beyond
// the token of an event, so an iterator that leaves a mark as it advances says where that is.
class MarkingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  MarkingIterator(const char* at, const char** mark) : at_(at), mark_(mark) {}

  reference operator*() const { return *at_; }
  MarkingIterator& operator++() {
    *mark_ = ++at_;
    return *this;
  }
  MarkingIterator operator++(int) {
    MarkingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const MarkingIterator& a, const MarkingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** mark_;
};

// Builds the tree from the parser's events.
class NodeRecorder : public nlohmann::json::json_sax_t {
 public:
  NodeRecorder(const char* begin, const char* const* mark, std::string file, std::size_t depth)
      : counted_(begin), mark_(mark), file_(std::move(file)), depth_(depth) {}

  bool null() override { return add_scalar(nullptr); }
  bool boolean(bool value) override { return add_scalar(value); }
  bool number_integer(number_integer_t value) override { return add_scalar(value); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto most = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    if (value > most) return add_scalar(static_cast<double>(value));
    return add_scalar(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add_scalar(value); }
  bool string(string_t& value) override { return add_scalar(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(JsonNode::Kind::object); }
  bool start_array(std::size_t) override { return open(JsonNode::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (find_member(open_.back(), name) != nullptr) fail_at(file_, line(), fmt::format("\"{}\" is given twice", name));
    pending_ = {std::move(name), line()};
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    fail_at(file_, line(), "not JSON: " + without_position(error.what()));
  }

  JsonNode take_root() { return std::move(root_); }

 private:
  // The parser's message begins with its own idea of the position and may quote the text, at any length.
  static std::string without_position(std::string_view message) {
    message = message.substr(0, message.find("; last read"));
    const std::size_t begin = message.find("syntax error");
    return std::string(begin == std::string_view::npos ? message : message.substr(begin));
  }

  // The line of the last character read: a number ends with the character after it, which may be a line break.
  int line() {
    const char* last = *mark_ == counted_ ? counted_ : *mark_ - 1;
    line_ += static_cast<int>(std::count(counted_, last, '\n'));
    counted_ = last;
    return line_;
  }

  JsonNode new_node(JsonNode::Kind kind) {
    JsonNode node;
    node.kind = kind;
    node.line = pending_.second != 0 ? pending_.second : line();
    node.key = std::exchange(pending_.first, {});
    pending_.second = 0;
    return node;
  }

  bool add(JsonNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().children.push_back(std::move(node));
    }
    return true;
  }

  bool add_scalar(JsonNode::Scalar value) {
    JsonNode node = new_node(JsonNode::Kind::scalar);
    node.scalar = std::move(value);
    return add(std::move(node));
  }

  bool open(JsonNode::Kind kind) {
    if (open_.size() == depth_) fail_at(file_, line(), fmt::format("nested deeper than {} levels", depth_));
    open_.push_back(new_node(kind));
    return true;
  }

  bool close() {
    JsonNode node = std::move(open_.back());
    open_.pop_back();
    return add(std::move(node));
  }

  const char* counted_;  // lines before it are in line_
  const char* const* mark_;
  int line_ = 1;
  std::string file_;
  std::size_t depth_;
  std::pair<std::string, int> pending_;  // key whose value comes next, and its line; 0 if there is none
  std::vector<JsonNode> open_;           // arrays and objects that have not ended, outermost first
  JsonNode root_;
};

std::string describe(const JsonNode& node) {
  if (node.kind == JsonNode::Kind::object) return "an object";
  if (node.kind == JsonNode::Kind::array) return "an array";
  constexpr std::size_t most = 60;
  const std::string value = std::visit([](const auto& scalar) { return nlohmann::json(scalar).dump(); }, node.scalar);
  return value.size() <= most ? value : value.substr(0, most) + "...";
}

std::string joined(std::initializer_list<std::string_view> names, std::initializer_list<std::string_view> more = {}) {
  std::vector<std::string_view> all(names);
  all.insert(all.end(), more);
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

JsonNode parse_located_json(std::string_view text, const std::string& file, const LocatedJsonLimits& limits) {
  if (text.size() > limits.bytes) {
    fail_at(file, 1, fmt::format("{} bytes, at most {} are read", text.size(), limits.bytes));
  }
  const char* mark = text.data();
  NodeRecorder recorder(text.data(), &mark, file, limits.depth);
  const bool complete = nlohmann::json::sax_parse(MarkingIterator(text.data(), &mark),
                                                  MarkingIterator(text.data() + text.size(), &mark), &recorder);
  check(complete, "a text that is not JSON ends in an Error");
  return recorder.take_root();
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

void NodeReader::fail(const JsonNode& node, const std::string& message) const { fail_at(file_, node.line, message); }

void NodeReader::fail_value(const JsonNode& node, std::string_view expected) const {
  const std::string name = node.key.empty() ? "an element" : fmt::format("\"{}\"", node.key);
  fail(node, fmt::format("{} is {}, expected {}", name, describe(node), expected));
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
    fail(child, fmt::format("unknown key \"{}\"; {} has {}", child.key, what, joined(required, optional)));
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
