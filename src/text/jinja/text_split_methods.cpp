#include <algorithm>
#include <array>
#include <limits>

#include "text/jinja/methods.hpp"
#include "text/jinja/unicode.hpp"

// Methods of str that split.

namespace qpn8::jinja {
namespace {

using Parts = std::vector<std::string_view>;

Value list_of(Runtime& runtime, const Value& self, const Parts& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) {
    items.push_back(make_text(runtime.budget(), std::string(part), self.text()->markup));
  }
  return make_list(runtime.budget(), std::move(items));
}

// Up to `most` cuts at runs of white space; what is left over keeps its white space at the end.
Parts split_at_space(std::string_view text, std::int64_t most) {
  Parts parts;
  for (text = strip_left(text); !text.empty(); text = strip_left(text)) {
    std::size_t end = most == 0 ? text.size() : 0;
    for (std::size_t next = end; next < text.size(); end = next) {
      if (is_space(next_code_point(text, next))) break;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
    --most;
  }
  return parts;
}

// The same from the right; the parts are in the order of the text.
Parts rsplit_at_space(std::string_view text, std::int64_t most) {
  Parts parts;
  for (text = strip_right(text); !text.empty(); text = strip_right(text)) {
    std::size_t start = most == 0 ? 0 : text.size();
    while (start > 0) {
      const std::size_t last = previous_code_point(text, start);
      std::size_t next = last;
      if (is_space(next_code_point(text, next))) break;
      start = last;
    }
    parts.push_back(text.substr(start));
    text = text.substr(0, start);
    --most;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Parts split_at(std::string_view text, std::string_view separator, std::int64_t most) {
  Parts parts;
  std::size_t position = 0;
  for (; most != 0; --most) {
    const std::size_t found = find(text, separator, position);
    if (found == std::string_view::npos) break;
    parts.push_back(text.substr(position, found - position));
    position = found + separator.size();
  }
  parts.push_back(text.substr(position));
  return parts;
}

Parts rsplit_at(Runtime& runtime, std::string_view text, std::string_view separator, std::int64_t most) {
  Parts parts;
  for (std::size_t i = text.size(); most != 0 && i >= separator.size();) {
    runtime.budget().work_bytes(separator.size());
    if (text.substr(i - separator.size(), separator.size()) != separator) {
      --i;
      continue;
    }
    parts.push_back(text.substr(i));
    text = text.substr(0, i - separator.size());
    i = text.size();
    --most;
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool from_right>
Value split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("split()", arguments, {"sep", "maxsplit"});
  const std::string_view text = self.text()->bytes;
  runtime.budget().work_characters(text.size());
  std::int64_t most = bound.integer(1, -1);
  if (most < 0) most = std::numeric_limits<std::int64_t>::max();
  if (bound.optional(0) == nullptr) {
    return list_of(runtime, self, from_right ? rsplit_at_space(text, most) : split_at_space(text, most));
  }
  const std::string_view separator = to_text(bound[0], "the separator");
  if (separator.empty()) throw TemplateError("empty separator");
  return list_of(runtime, self,
                 from_right ? rsplit_at(runtime, text, separator, most) : split_at(text, separator, most));
}

bool is_line_break(CodePoint c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

Value split_lines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("splitlines()", arguments, {"keepends"});
  const bool keep = bound.boolean(0, false);
  const std::string_view text = self.text()->bytes;
  runtime.budget().work_characters(text.size());
  Parts parts;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = i;
    const CodePoint c = next_code_point(text, i);
    if (!is_line_break(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    parts.push_back(text.substr(start, (keep ? i : end) - start));
    start = i;
  }
  if (start < text.size()) parts.push_back(text.substr(start));
  return list_of(runtime, self, parts);
}

constexpr std::array<NamedMethod, 3> kTextSplitMethods = {
    {{"split", split<false>}, {"rsplit", split<true>}, {"splitlines", split_lines}}};

}  // namespace

Method find_text_split_method(std::string_view name) { return find_in(kTextSplitMethods, name); }

}  // namespace qpn8::jinja
