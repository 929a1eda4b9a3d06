#include "checkpoint/json_reader.hpp"

#include <fmt/format.h>

#include <utility>

namespace qpn8 {

using nlohmann::json;

JsonReader::JsonReader(const json& object, std::string file, std::string path)
    : view_(object, std::move(file), std::move(path)) {
  view_.object();
}

const json* JsonReader::find(const char* key) const {
  const auto at = view_.value().find(key);
  return at == view_.value().end() || at->is_null() ? nullptr : &*at;
}

std::int64_t JsonReader::integer(const char* key, std::int64_t minimum, std::int64_t maximum) const {
  return view_[key].integer(minimum, maximum);
}

std::optional<std::int64_t> JsonReader::optional_integer(const char* key, std::int64_t minimum,
                                                         std::int64_t maximum) const {
  return view_[key].optional_integer(minimum, maximum);
}

std::optional<double> JsonReader::optional_number(const char* key) const { return view_[key].optional_number(); }

std::optional<double> JsonReader::optional_number(const char* key, double minimum, double maximum,
                                                  bool inclusive) const {
  const auto number = optional_number(key);
  if (!number) return number;
  const bool above = inclusive ? *number >= minimum : *number > minimum;
  if (above && *number <= maximum) return number;
  refuse(key, fmt::format("a number {} {} and at most {}", inclusive ? "of at least" : "above", minimum, maximum));
}

std::optional<bool> JsonReader::optional_boolean(const char* key) const { return view_[key].optional_flag(); }

std::optional<std::string> JsonReader::optional_string(const char* key) const { return view_[key].optional_text(); }

std::vector<std::string> JsonReader::strings(const char* key) const {
  std::vector<std::string> result;
  if (find(key) == nullptr) return result;
  for (const JsonView& element : view_[key].items()) result.push_back(element.text());
  return result;
}

std::vector<std::int64_t> JsonReader::token_ids(const char* key) const {
  std::vector<std::int64_t> result;
  if (find(key) == nullptr) return result;
  const JsonView value = view_[key];
  if (!value.value().is_array()) return {value.integer(0, kMaxConfigInteger)};
  for (const JsonView& element : value.items()) result.push_back(element.integer(0, kMaxConfigInteger));
  return result;
}

const json* JsonReader::optional_object(const char* key) const {
  return find(key) == nullptr ? nullptr : &view_[key].object();
}

}  // namespace qpn8
