#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/filters.hpp"
#include "text/jinja/html.hpp"
#include "text/jinja/methods.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/percent_format.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

// Filters that take a text (or what prints as one) and give a text.

namespace qpn8::jinja {
namespace {

// A str as it is, so that Markup stays Markup; anything else as it prints.
Value soft_text(Runtime& runtime, const Value& input) {
  return input.text() != nullptr ? input : make_text(runtime.budget(), to_str(runtime.budget(), input));
}

template <std::string (*map)(std::string_view)>
Value mapped_soft_text(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter", arguments);
  const Value text = soft_text(runtime, input);
  runtime.budget().work_characters(text.text()->bytes.size());
  return text_like(runtime.budget(), text, map(text.text()->bytes));
}

// Each word's first character in upper case. Unlike str.title, words begin behind spaces and opening brackets only.
std::string title_words(std::string_view text) {
  std::string out;
  bool start = true;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t from = i;
    const CodePoint c = next_code_point(text, i);
    const bool separator = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    const std::string_view character = text.substr(from, i - from);
    out += start && !separator ? to_upper(character) : to_lower(character);
    start = separator;
  }
  return out;
}

Value call_method(Runtime& runtime, std::string_view name, const Value& input, const Arguments& arguments) {
  const Value text = soft_text(runtime, input);
  return find_method(text, name)(runtime, text, arguments);
}

Value trim(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'trim'", arguments, {"chars"});
  return call_method(runtime, "strip", input, {{bound.has(0) ? bound[0] : Value()}, {}});
}

Value center(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'center'", arguments, {"width"});
  return call_method(runtime, "center", input, {{bound.integer(0, 80)}, {}});
}

Value replace(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'replace'", arguments, {"old", "new", "count"}, 2);
  Budget& budget = runtime.budget();
  const auto plain = [&](const Value& value) { return make_text(budget, to_str(budget, value)); };
  const std::int64_t count = bound.optional(2) == nullptr ? -1 : bound.integer(2, -1);
  return call_method(runtime, "replace", plain(input), {{plain(bound[0]), plain(bound[1]), count}, {}});
}

Value string(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'string'", arguments);
  return soft_text(runtime, input);
}

Value safe(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'safe'", arguments);
  return make_text(runtime.budget(), to_str(runtime.budget(), input), true);
}

Value escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'escape'", arguments);
  return make_text(runtime.budget(), escape_value(runtime.budget(), input), true);
}

Value force_escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'forceescape'", arguments);
  return make_text(runtime.budget(), escape_html(runtime.budget(), to_str(runtime.budget(), input)), true);
}

Value strip_tags_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'striptags'", arguments);
  return make_text(runtime.budget(), strip_tags(runtime.budget(), to_str(runtime.budget(), input)));
}

Value format(Runtime& runtime, const Value& input, const Arguments& arguments) {
  Budget& budget = runtime.budget();
  if (!arguments.positional.empty() && !arguments.keywords.empty()) {
    throw TemplateError("can't handle positional and keyword arguments at the same time");
  }
  const Value text = soft_text(runtime, input);
  if (arguments.keywords.empty()) return percent_format(budget, *text.text(), make_tuple(budget, arguments.positional));
  auto named = std::make_shared<Dict>(budget);
  for (const auto& [name, value] : arguments.keywords) named->set(budget, make_text(budget, name), value);
  return percent_format(budget, *text.text(), Value(std::shared_ptr<const Dict>(std::move(named))));
}

Value indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'indent'", arguments, {"width", "first", "blank"});
  Budget& budget = runtime.budget();
  const std::int64_t width = bound.has(0) && bound[0].text() != nullptr ? 0 : bound.integer(0, 4);
  budget.check_text_size(width);
  const std::string indention = bound.has(0) && bound[0].text() != nullptr
                                    ? bound[0].text()->bytes
                                    : std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  const bool blank = bound.boolean(2, false);
  to_text(input, "the input of filter 'indent'");
  // With a newline at the end, so that an empty last line counts as one.
  const Value text = text_like(runtime.budget(), input, input.text()->bytes + "\n");
  const Value lines = find_method(text, "splitlines")(runtime, text, {});
  TextBuilder out(budget);
  bool first = true;
  for (const Value& line : lines.sequence()->items) {
    const std::string& bytes = line.text()->bytes;
    if (!first) out.append("\n");
    if (first ? bound.boolean(1, false) : blank || !bytes.empty()) out.append(indention);
    out.append(bytes);
    first = false;
  }
  return make_text(std::move(out), input.text()->markup);
}

Value truncate(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'truncate'", arguments, {"length", "killwords", "end", "leeway"});
  const std::int64_t length = bound.integer(0, 255);
  const std::string_view end = bound.text(2, "...");
  const std::int64_t end_length = count_code_points(end);
  const std::int64_t leeway = bound.optional(3) == nullptr ? 5 : bound.integer(3, 5);
  if (length < end_length) throw TemplateError(fmt::format("expected length >= {}, got {}", end_length, length));
  if (leeway < 0) throw TemplateError(fmt::format("expected leeway >= 0, got {}", leeway));
  if (length_of(input) - leeway <= length) return input;
  const std::string_view text = to_text(input, "the input of filter 'truncate'");
  std::string_view kept = text.substr(0, byte_offset(text, length - end_length));
  if (!bound.boolean(1, false)) kept = kept.substr(0, kept.rfind(' '));
  return text_like(runtime.budget(), input, std::string(kept) + std::string(end));
}

Value word_count(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'wordcount'", arguments);
  std::int64_t words = 0;
  bool inside = false;
  const std::string text = to_str(runtime.budget(), input);
  runtime.budget().work_characters(text.size());
  all_code_points(text, [&](CodePoint c) {
    words += static_cast<std::int64_t>(is_word(c) && !inside);
    inside = is_word(c);
    return true;
  });
  return words;
}

Value urlencode(Runtime& runtime, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'urlencode'", arguments);
  Budget& budget = runtime.budget();
  if (input.text() != nullptr || !is_iterable(input)) {
    return make_text(budget, quote_url(budget, to_str(budget, input), false));
  }
  const Value pairs = input.dict() == nullptr ? input : find_method(input, "items")(runtime, input, {});
  TextBuilder out(budget);
  ItemSource source(budget, pairs);
  while (const auto pair = source.next()) {
    const std::vector<Value> parts = items_of(budget, *pair);
    if (parts.size() != 2) throw TemplateError("filter 'urlencode': expects pairs of a key and a value");
    if (!out.text().empty()) out.append("&");
    out.append(quote_url(budget, to_str(budget, parts[0]), true));
    out.append("=");
    out.append(quote_url(budget, to_str(budget, parts[1]), true));
  }
  return make_text(std::move(out));
}

Value xmlattr(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'xmlattr'", arguments, {"autospace"});
  const Dict* dict = input.dict();
  if (dict == nullptr) throw TemplateError(fmt::format("filter 'xmlattr': needs a dict, not {}", input.type_name()));
  Budget& budget = runtime.budget();
  TextBuilder out(budget);
  for (const auto& [key, value] : dict->entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    if (to_text(key, "an attribute's name").find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      throw TemplateError(fmt::format("Invalid character in attribute name: {}", to_repr(budget, key)));
    }
    if (!out.text().empty() || bound.boolean(0, true)) out.append(" ");
    out.append(fmt::format("{}=\"{}\"", escape_value(budget, key), escape_value(budget, value)));
  }
  return make_text(std::move(out));
}

constexpr std::array<NamedFilter, 19> kTextFilters = {{
    {"capitalize", mapped_soft_text<to_capitalized>},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"forceescape", force_escape},
    {"format", format},
    {"indent", indent},
    {"lower", mapped_soft_text<to_lower>},
    {"replace", replace},
    {"safe", safe},
    {"string", string},
    {"striptags", strip_tags_filter},
    {"title", mapped_soft_text<title_words>},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", mapped_soft_text<to_upper>},
    {"urlencode", urlencode},
    {"wordcount", word_count},
    {"xmlattr", xmlattr},
}};

}  // namespace

FilterFunction find_text_filter(std::string_view name) { return find_in(kTextFilters, name); }

}  // namespace qpn8::jinja
