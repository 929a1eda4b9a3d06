#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qpn8/error.hpp"

namespace qpn8 {

/// A value of an untrusted JSON file and where it stands, so that every error names the file and the key.
///
/// Reading a value of another type is Error::bad_file "FILE: KEY is VALUE, expected ...". A null counts as a value that
/// is not there. Refers to the document, which must outlive it; subtrees are never copied.
class JsonView {
 public:
  /// The value at `path` of a document, the root if that is empty.
  JsonView(const nlohmann::json& value, std::string file, std::string path = {});

  const nlohmann::json& value() const { return *value_; }
  bool is_null() const { return value_->is_null(); }

  /// A member of an object; a null where there is none.
  JsonView operator[](std::string_view key) const;
  /// The elements of an array.
  std::vector<JsonView> items() const;
  /// One element or member by its index or key as `label` spells it in messages.
  JsonView child(const nlohmann::json& value, const std::string& label) const;
  /// An error unless it is an object.
  const nlohmann::json& object() const;

  const std::string& text() const;
  std::optional<std::string> optional_text() const;
  std::string text_or(std::string_view fallback) const;

  bool flag() const;
  std::optional<bool> optional_flag() const;
  bool flag_or(bool fallback) const { return optional_flag().value_or(fallback); }

  /// In [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  std::optional<std::int64_t> optional_integer(std::int64_t low, std::int64_t high) const;

  /// Finite: JSON has no other numbers.
  double number() const;
  std::optional<double> optional_number() const;

  /// "FILE: KEY", the beginning of every message about this value.
  std::string place() const;
  [[noreturn]] void fail(Error::Kind kind, const std::string& what) const;
  [[noreturn]] void fail(const std::string& what) const { fail(Error::bad_file, what); }
  /// "FILE: KEY is VALUE, expected EXPECTED".
  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace qpn8
