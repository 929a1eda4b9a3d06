#pragma once

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "qpn8/error.hpp"

namespace qpn8::cli {

/// The number that `text` is as a whole, else Error::bad_argument naming `flag`.
template <class Number>
Number parse_number(const std::string& flag, const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  const char* expected = std::is_floating_point_v<Number> ? "a number"
                         : std::is_unsigned_v<Number>     ? "an integer of at least 0"
                                                          : "an integer";
  const char* fault = error == std::errc::result_out_of_range ? " is out of range; expected " : " is not ";
  throw Error(Error::bad_argument, flag + " " + text + ":" + fault + expected);
}

/// Numbers separated by commas, at least one, as "1,2,3".
template <class Number>
std::vector<Number> parse_numbers(const std::string& flag, const std::string& list) {
  std::vector<Number> numbers;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (begin == end) {
      const std::string fault = list.empty() ? ": is empty" : " " + list + ": a number is missing";
      throw Error(Error::bad_argument, flag + fault + "; expected numbers separated by commas, such as 1,2,3");
    }
    numbers.push_back(parse_number<Number>(flag, list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return numbers;
}

/// Error::bad_argument naming `flag` unless least <= value <= most.
inline void check_range(const char* flag, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw Error(Error::bad_argument, fmt::format("{} {}: expected {} to {}", flag, value, least, most));
}

/// The same of different numbers, each least to most.
inline std::vector<std::int64_t> parse_distinct(const char* flag, const std::string& list, std::int64_t least,
                                                std::int64_t most) {
  std::vector<std::int64_t> numbers = parse_numbers<std::int64_t>(flag, list);
  for (const std::int64_t number : numbers) {
    check_range(flag, number, least, most);
    if (std::count(numbers.begin(), numbers.end(), number) > 1) {
      throw Error(Error::bad_argument, fmt::format("{} {}: {} is there twice", flag, list, number));
    }
  }
  return numbers;
}

/// A flag with one number.
template <class Number>
void add_number(CLI::App& command, const std::string& flag, Number& target, const std::string& meaning) {
  const auto set = [flag, &target](const std::string& text) { target = parse_number<Number>(flag, text); };
  command.add_option_function<std::string>(flag, set, meaning)
      ->type_name(std::is_floating_point_v<Number> ? "NUMBER" : "INTEGER");
}

}  // namespace qpn8::cli
