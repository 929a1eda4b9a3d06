#include "text/pattern.hpp"

#include <utility>

namespace qpn8::text {
std::vector<Range> find_literal(std::string_view text, std::string_view literal) {
  std::vector<Range> matches;
  for (std::size_t at = text.find(literal); at != std::string_view::npos; at = text.find(literal, at)) {
    matches.push_back({at, at + literal.size()});
    at += literal.size();
  }
  return matches;
}

Pattern Pattern::parse(const JsonView& view) {
  if (const JsonView literal = view["String"]; !literal.is_null()) {
    if (literal.text().empty()) literal.fail("is empty; a pattern matches at least one character");
    return Pattern(literal.text());
  }
  if (const JsonView regex = view["Regex"]; !regex.is_null()) return Pattern(Regex(regex.text(), regex.place()));
  view.fail(R"(has neither "String" nor "Regex")");
}

std::vector<Range> Pattern::find_all(std::string_view text) const {
  if (const auto* literal = std::get_if<std::string>(&matcher_)) return find_literal(text, *literal);
  return std::get<Regex>(matcher_).find_all(text);
}

std::vector<Part> Pattern::partition(std::string_view text) const {
  return text::partition(text.size(), find_all(text));
}

std::string replace(std::string_view text, const std::vector<Range>& ranges, std::string_view content) {
  std::string result;
  result.reserve(text.size());
  for (const Part& part : partition(text.size(), ranges)) {
    result += part.is_match ? content : text.substr(part.range.begin, part.range.end - part.range.begin);
  }
  return result;
}

std::vector<Part> partition(std::size_t size, const std::vector<Range>& matches) {
  std::vector<Part> parts;
  parts.reserve(2 * matches.size() + 1);
  std::size_t end = 0;
  for (const Range& match : matches) {
    if (end != match.begin) parts.push_back({{end, match.begin}, false});
    parts.push_back({match, true});
    end = match.end;
  }
  if (end != size) parts.push_back({{end, size}, false});
  return parts;
}

}  // namespace qpn8::text
