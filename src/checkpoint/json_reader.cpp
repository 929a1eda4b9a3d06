#include "checkpoint/json_reader.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

using nlohmann::json;

namespace {

/// nlohmann keeps a non-negative integer beyond int64 as unsigned; such a value is out of any range asked for here.
std::optional<std::int64_t> as_integer(const json& value, std::int64_t minimum, std::int64_t maximum) {
  if (value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>())) return std::nullopt;
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < minimum || number > maximum) return std::nullopt;
  return number;
}

}  // namespace

JsonReader::JsonReader(const json& object, std::string file, std::string prefix)
    : object_(object), file_(std::move(file)), prefix_(std::move(prefix)) {
  if (!object.is_object()) {
    throw Error(Error::bad_file, fmt::format("{}: holds a JSON {}, expected an object", file_, object.type_name()));
  }
}

const json* JsonReader::find(const char* key) const {
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

void JsonReader::refuse(const char* key, const std::string& expected) const {
  const json* value = find(key);
  const std::string is =
      value == nullptr ? "missing" : printable(value->dump(-1, ' ', false, json::error_handler_t::replace), 80);
  throw Error(Error::bad_file, fmt::format("{}: {}{} is {}, expected {}", file_, prefix_, key, is, expected));
}

std::int64_t JsonReader::integer(const char* key, std::int64_t minimum, std::int64_t maximum) const {
  const auto value = optional_integer(key, minimum, maximum);
  if (!value) refuse(key, fmt::format("an integer of at least {}", minimum));
  return *value;
}

std::optional<std::int64_t> JsonReader::optional_integer(const char* key, std::int64_t minimum,
                                                         std::int64_t maximum) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = as_integer(*value, minimum, maximum);
  if (number) return number;
  // The limit above guards products, not models; only who exceeds it needs to know it.
  const bool too_large = value->is_number_integer() && !as_integer(*value, INT64_MIN, maximum);
  refuse(key, too_large ? fmt::format("at most {}", maximum) : fmt::format("an integer of at least {}", minimum));
}

std::optional<double> JsonReader::optional_number(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(key, "a number");
  return value->get<double>();
}

std::optional<double> JsonReader::optional_number(const char* key, double minimum, double maximum,
                                                  bool inclusive) const {
  const auto number = optional_number(key);
  if (!number) return number;
  const bool above = inclusive ? *number >= minimum : *number > minimum;
  if (above && *number <= maximum) return number;
  refuse(key, fmt::format("a number {} {} and at most {}", inclusive ? "of at least" : "above", minimum, maximum));
}

std::optional<bool> JsonReader::optional_boolean(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonReader::optional_string(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(key, "a string");
  return value->get<std::string>();
}

std::vector<std::string> JsonReader::strings(const char* key) const {
  const json* value = find(key);
  std::vector<std::string> result;
  if (value == nullptr) return result;
  if (!value->is_array()) refuse(key, "a list of strings");
  for (const json& element : *value) {
    if (!element.is_string()) refuse(key, "a list of strings");
    result.push_back(element.get<std::string>());
  }
  return result;
}

std::vector<std::int64_t> JsonReader::token_ids(const char* key) const {
  const json* value = find(key);
  std::vector<std::int64_t> result;
  if (value == nullptr) return result;
  const json list = value->is_array() ? *value : json::array({*value});
  for (const json& element : list) {
    const auto id = as_integer(element, 0, kMaxConfigInteger);
    if (!id) refuse(key, "a token id or a list of token ids");
    result.push_back(*id);
  }
  return result;
}

const json* JsonReader::optional_object(const char* key) const {
  const json* value = find(key);
  if (value != nullptr && !value->is_object()) refuse(key, "an object");
  return value;
}

}  // namespace qpn8
