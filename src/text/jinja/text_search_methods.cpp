#include <algorithm>
#include <array>

#include "text/jinja/methods.hpp"
#include "text/jinja/unicode.hpp"

// Methods of str that search.

namespace qpn8::jinja {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// The part of a text between two code point indices, as the optional last two arguments of str.find give them.
struct Window {
  std::string_view text;
  std::size_t offset = 0;  ///< of the part, in bytes
  bool valid = true;       ///< false where it starts behind the text or its own end
};

Window window_of(Runtime& runtime, const Value& self, const BoundArguments& bound) {
  const Text& text = *self.text();
  runtime.budget().work_bytes(text.bytes.size());
  const auto clamp = [&](std::size_t i, std::int64_t otherwise) {
    const std::int64_t index = bound.optional(i) == nullptr ? otherwise : to_index(bound[i]);
    return index < 0 ? std::max<std::int64_t>(index + text.length, 0) : index;
  };
  const std::int64_t start = clamp(1, 0);
  const std::int64_t end = std::min(clamp(2, text.length), text.length);
  if (start > end) return {{}, 0, false};
  const std::size_t first = byte_offset(text.bytes, start);
  const std::size_t last = byte_offset(text.bytes, end);
  const std::string_view bytes = text.bytes;
  return {bytes.substr(first, last - first), first, true};
}

std::int64_t code_point_index(const Value& self, const Window& window, std::size_t found) {
  if (found == kNone) return -1;
  const std::string_view bytes = self.text()->bytes;
  return count_code_points(bytes.substr(0, window.offset + found));
}

// The last occurrence; the search starts over behind each hit, so a long run of hits costs their number.
std::size_t find_last(Runtime& runtime, std::string_view text, std::string_view needle) {
  if (needle.size() > text.size()) return kNone;
  for (std::size_t i = text.size() - needle.size() + 1; i-- > 0;) {
    if (text[i] != needle[0]) continue;
    runtime.budget().work_bytes(needle.size());
    if (text.substr(i, needle.size()) == needle) return i;
  }
  return kNone;
}

Value find_first(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("find()", arguments, {"sub", "start", "end"}, 1);
  const std::string_view needle = to_text(bound[0], "find() argument");
  const Window window = window_of(runtime, self, bound);
  return code_point_index(self, window, window.valid ? find(window.text, needle) : kNone);
}

Value rfind(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("rfind()", arguments, {"sub", "start", "end"}, 1);
  const std::string_view needle = to_text(bound[0], "rfind() argument");
  const Window window = window_of(runtime, self, bound);
  if (!window.valid) return -1;
  const std::size_t found = needle.empty() ? window.text.size() : find_last(runtime, window.text, needle);
  return code_point_index(self, window, found);
}

template <Method search>
Value index_or_error(Runtime& runtime, const Value& self, const Arguments& arguments) {
  Value found = search(runtime, self, arguments);
  if (*found.integer() < 0) throw TemplateError("substring not found");
  return found;
}

Value count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("count()", arguments, {"sub", "start", "end"}, 1);
  const std::string_view needle = to_text(bound[0], "count() argument");
  const Window window = window_of(runtime, self, bound);
  if (!window.valid) return 0;
  if (needle.empty()) return count_code_points(window.text) + 1;
  std::int64_t occurrences = 0;
  for (std::size_t at = find(window.text, needle); at != kNone; at = find(window.text, needle, at + needle.size())) {
    ++occurrences;
  }
  return occurrences;
}

// Whether the text begins or ends with the affix, or with one of a tuple of affixes.
template <bool at_start>
Value has_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  constexpr std::string_view kName = at_start ? "startswith()" : "endswith()";
  const BoundArguments bound(kName, arguments, {"affix", "start", "end"}, 1);
  const Window window = window_of(runtime, self, bound);
  const auto matches = [&](const Value& affix) {
    const std::string_view text = to_text(affix, "each affix");
    if (!window.valid || text.size() > window.text.size()) return false;
    return window.text.substr(at_start ? 0 : window.text.size() - text.size(), text.size()) == text;
  };
  const Sequence* affixes = bound[0].sequence();
  if (affixes == nullptr || !affixes->is_tuple()) {
    to_text(bound[0], at_start ? "startswith first arg" : "endswith first arg");
    return matches(bound[0]);
  }
  return std::any_of(affixes->items.begin(), affixes->items.end(), matches);
}

// The text in front of the separator, the separator, and the text behind.
template <bool last>
Value partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("partition()", arguments, {"sep"}, 1);
  const std::string_view separator = to_text(bound[0], "separator");
  if (separator.empty()) throw TemplateError("empty separator");
  const std::string_view text = self.text()->bytes;
  runtime.budget().work_bytes(text.size());
  const std::size_t found = last ? find_last(runtime, text, separator) : find(text, separator);
  std::array<std::string_view, 3> parts;
  if (found != kNone) {
    parts = {text.substr(0, found), separator, text.substr(found + separator.size())};
  } else {
    parts[last ? 2 : 0] = text;
  }
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) {
    items.push_back(make_text(runtime.budget(), std::string(part), self.text()->markup));
  }
  return make_tuple(runtime.budget(), std::move(items));
}

constexpr std::array<NamedMethod, 9> kTextSearchMethods = {{{"find", find_first},
                                                            {"rfind", rfind},
                                                            {"index", index_or_error<find_first>},
                                                            {"rindex", index_or_error<rfind>},
                                                            {"count", count},
                                                            {"startswith", has_affix<true>},
                                                            {"endswith", has_affix<false>},
                                                            {"partition", partition<false>},
                                                            {"rpartition", partition<true>}}};

}  // namespace

Method find_text_search_method(std::string_view name) { return find_in(kTextSearchMethods, name); }

}  // namespace qpn8::jinja
