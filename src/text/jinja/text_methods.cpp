#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "text/jinja/format_spec.hpp"
#include "text/jinja/html.hpp"
#include "text/jinja/methods.hpp"
#include "text/jinja/unicode.hpp"

// Methods of str that map a text to a text or classify its characters.

namespace qpn8::jinja {
namespace {

const std::string& bytes(const Value& self) { return self.text()->bytes; }

template <std::string (*map)(std::string_view)>
Value mapped_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_arguments("str method", arguments);
  runtime.budget().work_characters(bytes(self).size());
  return text_like(runtime.budget(), self, map(bytes(self)));
}

// Whether `holds` for every character and there is one.
template <bool (*holds)(CodePoint)>
Value all_are(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_arguments("str method", arguments);
  runtime.budget().work_characters(bytes(self).size());
  return !bytes(self).empty() && all_code_points(bytes(self), holds);
}

bool is_alphanumeric(CodePoint c) { return is_letter(c) || is_numeric(c); }

Value is_ascii(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  refuse_arguments("isascii()", arguments);
  return self.text()->is_ascii();
}

// All cased characters are of the one case, and there is one.
template <bool (*right)(CodePoint)>
Value all_cased_are(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_arguments("str method", arguments);
  runtime.budget().work_characters(bytes(self).size());
  bool any = false;
  const bool all = all_code_points(bytes(self), [&any](CodePoint c) {
    any |= is_cased(c);
    return !is_cased(c) || right(c);
  });
  return all && any;
}

Value is_title(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_arguments("istitle()", arguments);
  runtime.budget().work_characters(bytes(self).size());
  bool any = false;
  bool after_cased = false;
  const bool all = all_code_points(bytes(self), [&](CodePoint c) {
    const bool cased = is_cased(c);
    const bool wrong = cased && after_cased != is_lower(c);
    any |= cased;
    after_cased = cased;
    return !wrong;
  });
  return all && any;
}

// Without the characters of `chars` (white space if it is not given) at the ends that are asked for.
Value stripped(Runtime& runtime, const Value& self, const Arguments& arguments, bool left, bool right) {
  const BoundArguments bound("strip()", arguments, {"chars"});
  std::string_view text = bytes(self);
  runtime.budget().work_bytes(text.size());
  if (bound.optional(0) == nullptr) {
    if (right) text = strip_right(text);
    if (left) text = strip_left(text);
    return text_like(runtime.budget(), self, std::string(text));
  }
  const std::string_view chars = to_text(bound[0], "strip arg");
  const auto is_stripped = [&](std::string_view character) {
    runtime.budget().work_bytes(chars.size());
    return find(chars, character) != std::string_view::npos;
  };
  while (left && !text.empty() && is_stripped(text.substr(0, code_point_size(text[0])))) {
    text.remove_prefix(code_point_size(text[0]));
  }
  while (right && !text.empty()) {
    const std::size_t last = previous_code_point(text, text.size());
    if (!is_stripped(text.substr(last))) break;
    text.remove_suffix(text.size() - last);
  }
  return text_like(runtime.budget(), self, std::string(text));
}

Value strip_both(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return stripped(runtime, self, arguments, true, true);
}
Value lstrip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return stripped(runtime, self, arguments, true, false);
}
Value rstrip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return stripped(runtime, self, arguments, false, true);
}

enum class Side : std::uint8_t { left, right, both };

template <Side text_at>
Value justified(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("justify", arguments, {"width", "fillchar"}, 1);
  const Text& text = *self.text();
  FormatSpec spec;
  spec.fill = bound.text(1, " ");
  if (count_code_points(spec.fill) != 1) throw TemplateError("The fill character must be exactly one character long");
  if (text.markup) spec.fill = escape_html(runtime.budget(), spec.fill);
  spec.width = bound.integer(0, 0);
  runtime.budget().check_text_size(spec.width);
  runtime.budget().work(std::max<std::int64_t>(spec.width, 0));
  // Python's center puts the odd one to the left if the width is odd.
  const std::int64_t missing = std::max<std::int64_t>(spec.width - text.length, 0);
  const std::int64_t before = text_at == Side::left    ? 0
                              : text_at == Side::right ? missing
                                                       : missing / 2 + (missing & spec.width & 1);
  TextBuilder out(runtime.budget());
  for (std::int64_t i = 0; i < before; ++i) out.append(spec.fill);
  out.append(text.bytes);
  for (std::int64_t i = before; i < missing; ++i) out.append(spec.fill);
  return make_text(std::move(out), text.markup);
}

Value zero_filled(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("zfill()", arguments, {"width"}, 1);
  const std::string_view text = bytes(self);
  const std::int64_t width = bound.integer(0, 0);
  runtime.budget().check_text_size(width);
  const bool has_sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  TextBuilder out(runtime.budget());
  if (has_sign) out.append(1, text[0]);
  out.append(static_cast<std::size_t>(std::max<std::int64_t>(width - self.text()->length, 0)), '0');
  out.append(text.substr(has_sign ? 1 : 0));
  return make_text(std::move(out), self.text()->markup);
}

Value without_prefix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("removeprefix()", arguments, {"prefix"}, 1);
  std::string_view text = bytes(self);
  const std::string_view prefix = to_text(bound[0], "removeprefix() argument");
  if (text.substr(0, prefix.size()) == prefix) text.remove_prefix(prefix.size());
  return text_like(runtime.budget(), self, std::string(text));
}

Value without_suffix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("removesuffix()", arguments, {"suffix"}, 1);
  std::string_view text = bytes(self);
  const std::string_view suffix = to_text(bound[0], "removesuffix() argument");
  if (text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix) {
    text.remove_suffix(suffix.size());
  }
  return text_like(runtime.budget(), self, std::string(text));
}

Value replaced(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("replace()", arguments, {"old", "new", "count"}, 2);
  const std::string_view text = bytes(self);
  const std::string_view old = to_text(bound[0], "replace() argument 1");
  std::string replacement(to_text(bound[1], "replace() argument 2"));
  if (self.text()->markup) replacement = escape_value(runtime.budget(), bound[1]);
  std::int64_t left = bound.integer(2, -1);
  TextBuilder out(runtime.budget());
  std::size_t position = 0;
  while (left != 0) {
    runtime.budget().work();
    std::size_t found = find(text, old, position);
    if (found == std::string_view::npos) break;
    out.append(text.substr(position, found - position));
    out.append(replacement);
    --left;
    position = found + old.size();
    if (!old.empty()) continue;
    // An empty text is found in front of each character and at the end.
    if (position >= text.size()) break;
    const std::size_t size = code_point_size(text[position]);
    out.append(text.substr(position, size));
    position += size;
  }
  if (position < text.size()) out.append(text.substr(position));
  return make_text(std::move(out), self.text()->markup);
}

Value joined(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const BoundArguments bound("join()", arguments, {"iterable"}, 1);
  Budget& budget = runtime.budget();
  TextBuilder out(budget);
  ItemSource source(budget, bound[0]);
  for (std::int64_t i = 0; const auto item = source.next(); ++i) {
    if (i > 0) out.append(bytes(self));
    if (item->text() == nullptr && !self.text()->markup) {
      throw TemplateError(fmt::format("sequence item {}: expected str instance, {} found", i, item->type_name()));
    }
    out.append(self.text()->markup ? escape_value(budget, *item) : item->text()->bytes);
  }
  return make_text(std::move(out), self.text()->markup);
}

constexpr std::array<NamedMethod, 28> kTextMethods = {{
    {"capitalize", mapped_text<to_capitalized>},
    {"casefold", mapped_text<fold_case>},
    {"lower", mapped_text<to_lower>},
    {"swapcase", mapped_text<swap_case>},
    {"title", mapped_text<to_title>},
    {"upper", mapped_text<to_upper>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isalpha", all_are<is_letter>},
    {"isascii", is_ascii},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_decimal>},
    {"islower", all_cased_are<is_lower>},
    {"isnumeric", all_are<is_numeric>},
    {"isspace", all_are<is_space>},
    {"istitle", is_title},
    {"isupper", all_cased_are<is_upper>},
    {"strip", strip_both},
    {"lstrip", lstrip},
    {"rstrip", rstrip},
    {"ljust", justified<Side::left>},
    {"rjust", justified<Side::right>},
    {"center", justified<Side::both>},
    {"zfill", zero_filled},
    {"removeprefix", without_prefix},
    {"removesuffix", without_suffix},
    {"replace", replaced},
    {"join", joined},
    {"format", format_fields},
}};

}  // namespace

Method find_text_method(std::string_view name) { return find_in(kTextMethods, name); }

}  // namespace qpn8::jinja
