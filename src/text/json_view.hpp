#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qpn8/error.hpp"

namespace qpn8::text {

/// A text in quotes with control characters escaped and its middle cut if it is long, for one-line messages.
std::string in_quotes(std::string_view text);

/// A value of an untrusted JSON file and where it stands, so that every error names the file and the key.
///
/// Reading a value of another type is Error::bad_file. Refers to the document, which must outlive it; subtrees are
/// never copied, since copying one that is nested deeply would exhaust the stack.
class JsonView {
 public:
  /// The root of a document.
  JsonView(const nlohmann::json& value, std::string file);

  const nlohmann::json& value() const { return *value_; }
  bool is_null() const { return value_->is_null(); }

  /// A member of an object; a null where there is none.
  JsonView operator[](std::string_view key) const;
  /// The elements of an array.
  std::vector<JsonView> items() const;
  /// One element or member by its index or key as `label` spells it in messages.
  JsonView child(const nlohmann::json& value, const std::string& label) const;

  const std::string& text() const;
  std::optional<std::string> optional_text() const;
  std::string text_or(std::string_view fallback) const;
  bool flag_or(bool fallback) const;
  /// A whole number in [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high) const;

  /// "FILE: KEY", the beginning of every message about this value.
  std::string place() const;
  [[noreturn]] void fail(Error::Kind kind, const std::string& what) const;
  [[noreturn]] void fail(const std::string& what) const { fail(Error::bad_file, what); }

 private:
  JsonView(const nlohmann::json& value, std::string file, std::string path);
  [[noreturn]] void fail_type(const std::string& expected) const;

  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

/// Parses a document; Error::bad_file names `file` and the position.
nlohmann::json parse_document(std::string_view text, const std::string& file);

}  // namespace qpn8::text
