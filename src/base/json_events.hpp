#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json_file.hpp"

// The one place where JSON text is read: builders of values are told what it holds, piece by piece.

namespace qpn8 {

/// How far the parser has read a text.
class JsonPosition {
 public:
  /// `line` is that of the text's first character.
  JsonPosition(std::string_view text, std::int64_t line)
      : reached_(text.data()), counted_(text.data()), line_start_(text.data()), line_(line) {}

  void advance_to(const char* reached) { reached_ = reached; }

  /// Line and column, in bytes from 1, of the last character read.
  std::int64_t line();
  std::int64_t column();

 private:
  const char* reached_;     // behind the last character read
  const char* counted_;     // line breaks before it are in line_
  const char* line_start_;  // of line_
  std::int64_t line_;
};

namespace json_events {

/// The parser does not say where its events are. It reads one character at a time and never more than one beyond the
/// token of an event, so an iterator that leaves a mark as it advances says where that is.
class Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Iterator(const char* at, JsonPosition& position) : at_(at), position_(&position) {}

  reference operator*() const { return *at_; }
  Iterator& operator++() {
    position_->advance_to(++at_);
    return *this;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  JsonPosition* position_;
};

[[noreturn]] void fail(const std::string& name, JsonPosition& position, const std::string& what);
[[noreturn]] void fail_syntax(const std::string& name, JsonPosition& position, const nlohmann::json::exception& error);
[[noreturn]] void fail_twice(const std::string& name, JsonPosition& position, const std::string& key);
[[noreturn]] void fail_depth(const std::string& name, JsonPosition& position, std::size_t depth);
[[noreturn]] void fail_values(const std::string& name, JsonPosition& position, std::size_t values);
/// What can be said of a text as a whole: its size, and the NUL that the parser would take for its end.
void check_text(std::string_view text, const std::string& name, std::int64_t line, const JsonLimits& limits);

/// Passes the parser's events on to a builder while the text stays within the limits. The names of the handlers are
/// the parser's.
template <class Builder>
class Handler {
 public:
  Handler(Builder& builder, const std::string& name, JsonPosition& position, const JsonLimits& limits)
      : builder_(builder), name_(name), position_(position), limits_(limits) {}

  bool null() { return scalar(nullptr); }
  bool boolean(bool value) { return scalar(value); }
  bool number_integer(std::int64_t value) { return scalar(value); }
  bool number_unsigned(std::uint64_t value) { return scalar(value); }
  bool number_float(double value, const std::string& /*text*/) { return scalar(value); }
  bool string(std::string& value) { return scalar(std::move(value)); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }  // JSON text has none
  bool start_object(std::size_t /*size*/) { return open(true); }
  bool start_array(std::size_t /*size*/) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!keys_.back().insert(name).second) fail_twice(name_, position_, name);
    builder_.key(std::move(name), position_);
    return true;
  }

  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/, const nlohmann::json::exception& error) {
    fail_syntax(name_, position_, error);
  }

 private:
  void count() {
    if (++values_ > limits_.values) fail_values(name_, position_, limits_.values);
  }

  template <class Value>
  bool scalar(Value&& value) {
    count();
    builder_.scalar(std::forward<Value>(value), position_);
    return true;
  }

  bool open(bool object) {
    if (keys_.size() == limits_.depth) fail_depth(name_, position_, limits_.depth);
    count();
    keys_.emplace_back();
    builder_.open(object, position_);
    return true;
  }

  bool close() {
    keys_.pop_back();
    builder_.close();
    return true;
  }

  Builder& builder_;
  const std::string& name_;
  JsonPosition& position_;
  const JsonLimits& limits_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each object that is open; arrays have an empty set
  std::size_t values_ = 0;
};

}  // namespace json_events

/// Reads a text as parse_json() promises, and tells the builder what it holds, in the text's order:
///
///   scalar(value, position)   nullptr, bool, std::int64_t (negative), std::uint64_t, double or std::string
///   key(name, position)       the next value is the member of that name
///   open(is_object, position), close()
template <class Builder>
void parse_json_events(std::string_view text, const std::string& name, std::int64_t line, const JsonLimits& limits,
                       Builder& builder) {
  json_events::check_text(text, name, line, limits);
  JsonPosition position(text, line);
  json_events::Handler<Builder> handler(builder, name, position, limits);
  nlohmann::json::sax_parse(json_events::Iterator(text.data(), position),
                            json_events::Iterator(text.data() + text.size(), position), &handler);
}

}  // namespace qpn8
