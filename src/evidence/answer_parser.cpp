#include "evidence/answer_parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace qpn8 {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// LaTeX and Unicode spellings of what the number grammar below knows. A thin space between digits groups thousands.
std::string plain_spelling(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSpellings = {{
      {"\u2212", "-"},
      {"{,}", ","},
      {"\\$", "$"},
      {"\\%", "%"},
      {"\\,", ","},
      {"\\!", ""},
      {"\\ ", " "},
  }};
  std::string plain(text);
  for (const auto& [from, to] : kSpellings) replace_all(plain, from, to);
  return plain;
}

/// A number as the text has it.
struct Number {
  std::size_t begin = 0;  ///< sign and currency included
  std::size_t end = 0;
  std::optional<std::int64_t> value;  ///< nothing if it is not whole or not an int64
};

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// End of the integer part that starts at `at`: d{1,3}(,ddd)+ if the text is grouped so, else all digits.
std::size_t skip_grouped_digits(std::string_view text, std::size_t at) {
  std::size_t end = skip_digits(text, at);
  if (end - at > 3) return end;
  while (end < text.size() && text[end] == ',' && skip_digits(text, end + 1) == end + 4) end += 4;
  return end;
}

/// Whether a minus at `at` is a sign: it is not when it joins the number to what stands before it.
bool is_sign(std::string_view text, std::size_t at) {
  if (at == 0) return true;
  const char before = text[at - 1];
  return !is_digit(before) && !is_letter(before) && before != ')';
}

/// Start of the sign and currency that belong to the digits at `digits`, and whether they negate: "-$", "$-", "-", "$".
std::pair<std::size_t, bool> number_start(std::string_view text, std::size_t digits) {
  std::size_t begin = digits;
  bool negative = false;
  bool signed_already = false;
  bool currency = false;
  while (begin > 0) {
    const char c = text[begin - 1];
    if (c == '$' && !currency) {
      currency = true;
    } else if ((c == '-' || c == '+') && !signed_already && is_sign(text, begin - 1)) {
      signed_already = true;
      negative = c == '-';
    } else {
      break;
    }
    --begin;
  }
  return {begin, negative};
}

std::optional<std::int64_t> to_integer(std::string_view digits, bool negative) {
  std::string plain(negative ? "-" : "");
  std::copy_if(digits.begin(), digits.end(), std::back_inserter(plain), is_digit);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc() || end != plain.data() + plain.size()) return std::nullopt;
  return value;
}

/// The first number at or after `from`.
std::optional<Number> find_number(std::string_view text, std::size_t from) {
  std::size_t digits = from;
  while (digits < text.size() && !is_digit(text[digits])) ++digits;
  if (digits == text.size()) return std::nullopt;

  // ".50": the point belongs to the number where nothing that could end in a point stands before it.
  const bool bare_fraction =
      digits > 0 && text[digits - 1] == '.' && (digits == 1 || is_space(text[digits - 2]) || text[digits - 2] == '$');
  const auto [begin, negative] = number_start(text, bare_fraction ? digits - 1 : digits);
  const std::size_t whole_end = bare_fraction ? digits : skip_grouped_digits(text, digits);
  std::size_t end = bare_fraction ? skip_digits(text, digits) : whole_end;
  std::string_view fraction;
  if (bare_fraction) {
    fraction = text.substr(digits, end - digits);
  } else if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
    end = skip_digits(text, whole_end + 1);
    fraction = text.substr(whole_end + 1, end - whole_end - 1);
  }
  Number number{begin, end, std::nullopt};
  const bool whole = !bare_fraction && fraction.find_first_not_of('0') == std::string_view::npos;
  if (whole) number.value = to_integer(text.substr(digits, whole_end - digits), negative);
  return number;
}

/// What the braces that open at `open` hold, to their match or to the end of the text.
std::string_view braced(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return text.substr(open + 1, at - open - 1);
  }
  return text.substr(open + 1);
}

/// Takes the wrappers that only set type off a box's content: "\text{-1,024}" becomes "-1,024".
void unwrap_type(std::string& text) {
  static constexpr std::array<std::string_view, 6> kWrappers = {"\\text{",   "\\textbf{", "\\mathrm{",
                                                                "\\mathbf{", "\\mathit{", "\\mbox{"};
  for (std::string_view wrapper : kWrappers) {
    for (std::size_t at = text.find(wrapper); at != std::string::npos; at = text.find(wrapper, at)) {
      const std::string inner(braced(text, at + wrapper.size() - 1));
      text.replace(at, std::min(wrapper.size() + inner.size() + 1, text.size() - at), inner);
    }
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// The text as one number, with a unit of letters and spaces after it, or a percent sign, if `unit_allowed`.
std::optional<std::int64_t> whole_number(std::string_view text, bool unit_allowed) {
  text = trimmed(text);
  const std::optional<Number> number = find_number(text, 0);
  if (!number || number->begin != 0) return std::nullopt;
  const std::string_view rest = text.substr(number->end);
  const bool is_unit =
      std::all_of(rest.begin(), rest.end(), [](char c) { return is_letter(c) || is_space(c) || c == '%' || c == '.'; });
  if (!rest.empty() && !(unit_allowed && is_unit)) return std::nullopt;
  return number->value;
}

}  // namespace

std::optional<std::int64_t> parse_last_number(std::string_view text) {
  const std::string plain = plain_spelling(text);
  std::optional<Number> last;
  for (auto number = find_number(plain, 0); number; number = find_number(plain, number->end)) last = number;
  return last ? last->value : std::nullopt;
}

std::optional<std::int64_t> parse_answer(std::string_view text) {
  static constexpr std::string_view kBox = "\\boxed{";
  const std::size_t box = text.rfind(kBox);
  if (box == std::string_view::npos) return parse_last_number(text);
  std::string content = plain_spelling(braced(text, box + kBox.size() - 1));
  unwrap_type(content);
  return whole_number(content, /*unit_allowed=*/true);
}

std::optional<std::int64_t> parse_gold(const nlohmann::ordered_json& answer) {
  if (answer.is_number_unsigned() && answer.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  if (answer.is_number_integer()) return answer.get<std::int64_t>();
  if (!answer.is_string()) return std::nullopt;
  const std::string text = plain_spelling(answer.get_ref<const std::string&>());
  static constexpr std::string_view kMark = "####";
  const std::size_t mark = text.rfind(kMark);
  std::string_view number = text;
  if (mark != std::string::npos) number.remove_prefix(mark + kMark.size());
  return whole_number(number, /*unit_allowed=*/false);
}

}  // namespace qpn8
