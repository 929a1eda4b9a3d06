#include "text/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.hpp"
#include "base/utf8.hpp"

namespace qpn8::text {
namespace {

utf8proc_category_t category(char32_t value) { return utf8proc_category(static_cast<utf8proc_int32_t>(value)); }

bool is_letter(char32_t value) {
  const utf8proc_category_t kind = category(value);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

/// Symbols that count as alphabetic: circled, squared and negative letters.
bool is_enclosed_letter(char32_t value) {
  return (value >= 0x24B6 && value <= 0x24E9) || (value >= 0x1F130 && value <= 0x1F149) ||
         (value >= 0x1F150 && value <= 0x1F169) || (value >= 0x1F170 && value <= 0x1F189);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// The full decomposition of a text, before reordering.
std::vector<utf8proc_int32_t> decompose(std::string_view text, utf8proc_option_t options) {
  constexpr int kLongest = 32;  // the longest decomposition is 18 code points (U+FDFA)
  std::vector<utf8proc_int32_t> result;
  result.reserve(text.size());
  std::array<utf8proc_int32_t, kLongest> buffer = {};
  int boundary_class = UTF8PROC_BOUNDCLASS_START;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    at += point.size;
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(point.value), buffer.data(),
                                                           kLongest, options, &boundary_class);
    check(count >= 0 && count <= kLongest, "a code point of a well-formed text decomposes");
    result.insert(result.end(), buffer.begin(), buffer.begin() + count);
  }
  return result;
}

/// Canonical ordering. utf8proc's own is quadratic in the length of a run of marks, this one is not.
void reorder_marks(std::vector<utf8proc_int32_t>& points) {
  const auto combining_class = [](utf8proc_int32_t point) { return utf8proc_get_property(point)->combining_class; };
  auto begin = points.begin();
  while (begin != points.end()) {
    begin = std::find_if(begin, points.end(), [&](auto point) { return combining_class(point) != 0; });
    const auto end = std::find_if(begin, points.end(), [&](auto point) { return combining_class(point) == 0; });
    std::stable_sort(begin, end, [&](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

}  // namespace

bool is_space(char32_t value) {
  return (value >= 0x09 && value <= 0x0D) || value == 0x20 || value == 0x85 || value == 0xA0 || value == 0x1680 ||
         (value >= 0x2000 && value <= 0x200A) || value == 0x2028 || value == 0x2029 || value == 0x202F ||
         value == 0x205F || value == 0x3000;
}

bool is_numeric(char32_t value) {
  const utf8proc_category_t kind = category(value);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_mark(char32_t value) {
  const utf8proc_category_t kind = category(value);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_word(char32_t value) {
  const utf8proc_category_t kind = category(value);
  const bool joins = value == 0x200C || value == 0x200D;
  return is_letter(value) || is_mark(value) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC || joins || is_enclosed_letter(value);
}

std::string to_lower(std::string_view text) {
  constexpr char32_t kCapitalIWithDot = 0x130;  // the only code point whose lower case is two
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    at += point.size;
    if (point.value == kCapitalIWithDot) {
      result += "i\xCC\x87";
    } else {
      append_code_point(result, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point.value))));
    }
  }
  return result;
}

std::string normalize(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);  // ASCII is its own normal form in all four
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  const int decomposition = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
  std::vector<utf8proc_int32_t> points = decompose(text, static_cast<utf8proc_option_t>(decomposition));
  reorder_marks(points);
  if (compose) {
    const int composition = UTF8PROC_COMPOSE | UTF8PROC_STABLE;
    const utf8proc_ssize_t count = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                                            static_cast<utf8proc_option_t>(composition));
    check(count >= 0, "a decomposition composes");
    points.resize(static_cast<std::size_t>(count));
  }
  std::string result;
  result.reserve(text.size());
  for (const utf8proc_int32_t point : points) append_code_point(result, static_cast<char32_t>(point));
  return result;
}

}  // namespace qpn8::text
