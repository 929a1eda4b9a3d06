#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json_file.hpp"

namespace qpn8 {

/// Typed access to the members of one JSON object, with the messages of bad input: "FILE: KEY is VALUE, expected ...".
/// A member that is null counts as absent. Borrows the object.
class JsonReader {
 public:
  /// `prefix` stands before keys in messages: "rope_parameters." for a nested object.
  JsonReader(const nlohmann::json& object, std::string file, std::string prefix = "");

  /// Null if absent.
  const nlohmann::json* find(const char* key) const;

  std::int64_t integer(const char* key, std::int64_t minimum, std::int64_t maximum) const;
  std::optional<std::int64_t> optional_integer(const char* key, std::int64_t minimum, std::int64_t maximum) const;
  /// Finite: JSON has no other numbers.
  std::optional<double> optional_number(const char* key) const;
  /// Error unless minimum < value <= maximum, or minimum <= value with `inclusive`.
  std::optional<double> optional_number(const char* key, double minimum, double maximum, bool inclusive) const;
  std::optional<bool> optional_boolean(const char* key) const;
  std::optional<std::string> optional_string(const char* key) const;
  /// A list of strings; empty if absent.
  std::vector<std::string> strings(const char* key) const;
  /// A token id or a list of them; empty if absent.
  std::vector<std::int64_t> token_ids(const char* key) const;
  /// Null if absent; an error unless it is an object.
  const nlohmann::json* optional_object(const char* key) const;

  /// Error::bad_file "FILE: KEY is VALUE, expected EXPECTED".
  [[noreturn]] void refuse(const char* key, const std::string& expected) const;

 private:
  const nlohmann::json& object_;
  std::string file_;
  std::string prefix_;
};

/// The largest integer a config may hold: the product of two still fits 64 bits.
inline constexpr std::int64_t kMaxConfigInteger = 2'147'483'647;

/// What a configuration file may cost before it is refused.
inline constexpr JsonLimits kConfigLimits = {.bytes = std::size_t{16} << 20, .values = 500'000, .depth = 64};

}  // namespace qpn8
