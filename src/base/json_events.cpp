#include "base/json_events.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

std::int64_t JsonPosition::line() {
  // A number ends with the character after it, which may be a line break: that one is not counted yet.
  const char* const last = reached_ == counted_ ? counted_ : reached_ - 1;
  for (; counted_ < last; ++counted_) {
    if (*counted_ != '\n') continue;
    ++line_;
    line_start_ = counted_ + 1;
  }
  return line_;
}

std::int64_t JsonPosition::column() {
  line();
  return std::max<std::int64_t>(1, reached_ - line_start_);
}

namespace json_events {
namespace {

/// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - REASON; last
/// read: 'TEXT'; ..." -> REASON.
std::string reason_of(std::string_view message) {
  for (const std::string_view before : {"] ", " - "}) {
    if (const auto at = message.find(before); at != std::string_view::npos) message.remove_prefix(at + before.size());
  }
  return printable(message.substr(0, message.find("; last read")));
}

}  // namespace

void fail(const std::string& name, JsonPosition& position, const std::string& what) {
  throw Error(Error::bad_file, fmt::format("{}:{}:{}: {}", name, position.line(), position.column(), what));
}

void fail_syntax(const std::string& name, JsonPosition& position, const nlohmann::json::exception& error) {
  fail(name, position, "not valid JSON: " + reason_of(error.what()));
}

void fail_twice(const std::string& name, JsonPosition& position, const std::string& key) {
  fail(name, position, fmt::format("key {} stands twice in one object", in_quotes(key)));
}

void fail_depth(const std::string& name, JsonPosition& position, std::size_t depth) {
  fail(name, position, fmt::format("nested more than {} deep", depth));
}

void fail_values(const std::string& name, JsonPosition& position, std::size_t values) {
  fail(name, position, fmt::format("more than {} values", values));
}

void check_text(std::string_view text, const std::string& name, std::int64_t line, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw Error(Error::bad_file,
                fmt::format("{}: is {} bytes long, expected at most {}", name, text.size(), limits.bytes));
  }
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    JsonPosition position(text, line);
    position.advance_to(text.data() + nul + 1);
    fail(name, position, "a NUL byte, which JSON text cannot hold");
  }
}

}  // namespace json_events
}  // namespace qpn8
