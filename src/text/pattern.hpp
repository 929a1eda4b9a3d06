#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_view.hpp"
#include "text/regex.hpp"

namespace qpn8::text {

/// A part of a text that a pattern matches, or that lies between two matches.
struct Part {
  Range range;
  bool is_match = false;
};

/// `{"String": literal}` or `{"Regex": expression}` of tokenizer.json. Immutable and thread-safe.
class Pattern {
 public:
  static Pattern parse(const JsonView& view);

  /// Matches from left to right, none overlapping.
  std::vector<Range> find_all(std::string_view text) const;
  /// The matches and what lies between them: the whole text without a gap.
  std::vector<Part> partition(std::string_view text) const;

 private:
  explicit Pattern(std::variant<std::string, Regex> matcher) : matcher_(std::move(matcher)) {}

  std::variant<std::string, Regex> matcher_;
};

/// Where a text that is not empty occurs in another, from left to right, none overlapping.
std::vector<Range> find_literal(std::string_view text, std::string_view literal);

/// The text with each of these ranges replaced.
std::string replace(std::string_view text, const std::vector<Range>& ranges, std::string_view content);

/// What lies between these ranges of a text of `size` bytes, and the ranges; empty gaps are left out.
std::vector<Part> partition(std::size_t size, const std::vector<Range>& matches);

}  // namespace qpn8::text
