#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_file.hpp"

namespace qpn8 {

/// A JSON value that knows its key and its line, so that what is wrong with it can be said where it stands.
struct JsonNode {
  enum class Kind : std::uint8_t { scalar, array, object };
  /// An integer beyond 64 bits is a double, as in other readers of JSON.
  using Scalar = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;

  std::string key;  ///< empty for the elements of an array and for the whole text
  std::int64_t line =
      1;  ///< of the key, or of the value's first character where there is none; strings do not span lines
  Kind kind = Kind::scalar;
  Scalar scalar;
  std::vector<JsonNode> children;  ///< elements of an array, members of an object in the file's order
};

/// Reads JSON as parse_json() does, with the same errors.
JsonNode parse_located_json(std::string_view text, const std::string& file, const JsonLimits& limits);

/// Typed access to one file's nodes; each fault is Error::bad_file "FILE:LINE: ..." that names the key.
class NodeReader {
 public:
  explicit NodeReader(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void fail(const JsonNode& node, const std::string& message) const;

  /// "KEY is VALUE, expected EXPECTED".
  [[noreturn]] void fail_value(const JsonNode& node, std::string_view expected) const;

  /// Refuses what is not an object, lacks a required key or has one that is in neither list. `what` names the object
  /// in messages ("a row").
  void expect_object(const JsonNode& node, std::string_view what, std::initializer_list<std::string_view> required,
                     std::initializer_list<std::string_view> optional = {}) const;

  const std::vector<JsonNode>& elements(const JsonNode& node) const;
  const std::string& text(const JsonNode& node) const;  ///< not empty
  bool boolean(const JsonNode& node) const;
  std::int64_t integer(const JsonNode& node, std::int64_t least, std::int64_t most) const;

  /// The position of the text in `names`.
  std::size_t choice(const JsonNode& node, std::initializer_list<std::string_view> names) const;

 private:
  std::string file_;
};

/// The member of that key, or nullptr.
const JsonNode* find_member(const JsonNode& object, std::string_view key);

/// The member of that key, which expect_object has made sure of.
const JsonNode& member(const JsonNode& object, std::string_view key);

}  // namespace qpn8
