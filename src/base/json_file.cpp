#include "base/json_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/mapped_file.hpp"
#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;

/// An input iterator that tells how far the parser has read, so that a fault found in a callback has a position too.
class TrackingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}

  reference operator*() const { return *at_; }
  TrackingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  friend bool operator==(const TrackingIterator& a, const TrackingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - REASON; last
/// read: 'TEXT'; ..." -> REASON.
std::string reason_of(const std::string& message) {
  std::string_view reason = message;
  for (const std::string_view before : {"] ", " - "}) {
    if (const auto at = reason.find(before); at != std::string_view::npos) reason.remove_prefix(at + before.size());
  }
  return printable(reason.substr(0, reason.find("; last read")));
}

/// Builds the value while it checks the limits; a handler that returns false ends the parse.
class Builder {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() { return put(nullptr) != nullptr; }
  bool boolean(bool value) { return put(value) != nullptr; }
  bool number_integer(json::number_integer_t value) { return put(value) != nullptr; }
  bool number_unsigned(json::number_unsigned_t value) { return put(value) != nullptr; }
  bool number_float(json::number_float_t value, const std::string&) { return put(value) != nullptr; }
  bool string(std::string& value) { return put(std::move(value)) != nullptr; }
  bool binary(json::binary_t& value) { return put(std::move(value)) != nullptr; }
  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const auto [position, inserted] = open_.back()->emplace(name, nullptr);
    if (!inserted) return fail(fmt::format("key \"{}\" stands twice in one object", printable(name)));
    member_ = &position.value();
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) {
    return fail(reason_of(error.what()));
  }

  json take() { return std::move(root_); }
  const std::string& fault() const { return fault_; }

 private:
  bool fail(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  /// Where the value was stored; null when there are too many.
  template <class Value>
  json* put(Value&& value) {
    if (++values_ > limits_.values) {
      fail(fmt::format("more than {} values", limits_.values));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    if (open_.back()->is_object()) {
      *member_ = std::forward<Value>(value);
      return member_;
    }
    open_.back()->push_back(std::forward<Value>(value));
    return &open_.back()->back();
  }

  bool open(json container) {
    if (open_.size() == limits_.depth) return fail(fmt::format("nested more than {} deep", limits_.depth));
    json* stored = put(std::move(container));
    if (stored != nullptr) open_.push_back(stored);
    return stored != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  json root_;
  std::vector<json*> open_;  // an element is never moved while it is open: its parent grows only after it is closed
  json* member_ = nullptr;
  std::size_t values_ = 0;
  std::string fault_;
};

[[noreturn]] void fail_at(const std::string& name, std::string_view before, const std::string& what) {
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto column = std::max<std::size_t>(1, before.size() - line_start);
  throw Error(Error::bad_file, fmt::format("{}:{}:{}: {}", name, line, column, what));
}

}  // namespace

json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw Error(Error::bad_file,
                fmt::format("{}: is {} bytes long, expected at most {}", name, text.size(), limits.bytes));
  }
  // The parser takes a NUL for the end of its input, and would not see what stands behind it.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    fail_at(name, text.substr(0, nul + 1), "a NUL byte, which JSON text cannot hold");
  }
  const char* reached = text.data();
  Builder builder(limits);
  if (!json::sax_parse(TrackingIterator(text.data(), &reached), TrackingIterator(text.data() + text.size(), &reached),
                       &builder)) {
    fail_at(name, text.substr(0, static_cast<std::size_t>(reached - text.data())), builder.fault());
  }
  return builder.take();
}

json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(), limits);
}

}  // namespace qpn8
