#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json_file.hpp"
#include "base/json_view.hpp"

namespace qpn8 {

/// Typed access to the members of one JSON object by their keys: a JsonView with the ranges that configurations need.
/// A member that is null counts as absent. Borrows the object.
class JsonReader {
 public:
  /// `path` is where the object stands in the file: "rope_parameters"; empty for the whole of it.
  JsonReader(const nlohmann::json& object, std::string file, std::string path = "");

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
  [[noreturn]] void refuse(const char* key, const std::string& expected) const { view_[key].refuse(expected); }

 private:
  JsonView view_;
};

/// The largest integer a config may hold: the product of two still fits 64 bits.
inline constexpr std::int64_t kMaxConfigInteger = 2'147'483'647;

/// What a configuration file may cost before it is refused.
inline constexpr JsonLimits kConfigLimits = {.bytes = std::size_t{16} << 20, .values = 500'000, .depth = 64};

}  // namespace qpn8
