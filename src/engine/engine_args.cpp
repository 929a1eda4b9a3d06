#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "engine/engine_options.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Json> parse_number(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  const std::string_view digits = plus ? text.substr(1) : text;
  if (const auto integer = parse_whole<std::int64_t>(digits)) return Json(*integer);
  const auto real = parse_whole<double>(digits);
  // "inf" and "nan" parse as numbers, but no option wants them and JSON cannot hold them: they stay texts.
  if (real && std::isfinite(*real)) return Json(*real);
  return std::nullopt;
}

// What begins as JSON does is meant to be JSON: a slip in it must not make it a text.
Json parse_json_value(std::string_view value, std::string_view arg) {
  try {
    return parse_json<Json>(value, "engine argument " + in_quotes(arg));
  } catch (const Error& error) {
    throw Error(Error::bad_argument, error.what());
  }
}

Json parse_value(std::string_view value, std::string_view arg) {
  if (equal_ignoring_case(value, "true")) return true;
  if (equal_ignoring_case(value, "false")) return false;
  if (equal_ignoring_case(value, "none")) return nullptr;
  if (auto number = parse_number(value)) return *number;
  if (value.starts_with('[') || value.starts_with('{')) return parse_json_value(value, arg);
  return std::string(value);
}

}  // namespace

nlohmann::ordered_json parse_engine_args(std::span<const std::string> args) {
  Json parsed = Json::object();
  for (const std::string& arg : args) {
    const std::size_t equals = arg.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(Error::bad_argument, "engine argument " + in_quotes(arg) + ": expected KEY=VALUE");
    }
    std::string key = arg.substr(0, equals);
    std::replace(key.begin(), key.end(), '-', '_');
    parsed[key] = parse_value(arg.substr(equals + 1), arg);
  }
  return parsed;
}

}  // namespace qpn8
