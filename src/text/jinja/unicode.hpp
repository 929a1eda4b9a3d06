#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Python's text semantics on UTF-8: what counts is the code point. All functions take valid UTF-8 (see is_valid_utf8),
// which every text of the interpreter is. Case mappings are the simple ones plus the Latin characters whose upper case
// is more than one; the final sigma is not treated apart.

namespace qpn8::jinja {

using CodePoint = std::int32_t;

bool is_valid_utf8(std::string_view text);
std::int64_t count_code_points(std::string_view text);

/// Bytes of the code point that starts with this byte.
inline std::size_t code_point_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

/// The code point at `position`, which moves behind it.
CodePoint next_code_point(std::string_view text, std::size_t& position);
/// The offset of the code point that ends in front of `position`, which is not 0.
std::size_t previous_code_point(std::string_view text, std::size_t position);
std::vector<CodePoint> code_points(std::string_view text);

template <class Predicate>
bool all_code_points(std::string_view text, Predicate holds) {
  for (std::size_t i = 0; i < text.size();) {
    if (!holds(next_code_point(text, i))) return false;
  }
  return true;
}

void append_code_point(std::string& text, CodePoint code_point);

/// The byte offset of the code point with that index; the text's size for the index behind the last.
std::size_t byte_offset(std::string_view text, std::int64_t index);

bool is_space(CodePoint c);
bool is_letter(CodePoint c);     ///< str.isalpha
bool is_decimal(CodePoint c);    ///< str.isdecimal, and str.isdigit but for superscripts and the like
bool is_numeric(CodePoint c);    ///< str.isnumeric but for ideographs
bool is_word(CodePoint c);       ///< \w of Python's re
bool is_printable(CodePoint c);  ///< whether repr shows it as it is
bool is_lower(CodePoint c);
bool is_upper(CodePoint c);
bool is_cased(CodePoint c);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);        ///< str.title: each run of letters starts with title case
std::string to_capitalized(std::string_view text);  ///< str.capitalize
std::string fold_case(std::string_view text);       ///< str.casefold
std::string swap_case(std::string_view text);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
inline std::string_view strip(std::string_view text) { return strip_left(strip_right(text)); }

/// str.find in time linear in the haystack, from a byte offset; npos if there is none.
std::size_t find(std::string_view haystack, std::string_view needle, std::size_t from = 0);

}  // namespace qpn8::jinja
