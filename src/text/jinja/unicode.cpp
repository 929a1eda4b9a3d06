#include "text/jinja/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace qpn8::jinja {
namespace {

// Characters whose upper case is a sequence; the title case of the sequence keeps all but the first letter lower.
struct LongUpper {
  CodePoint code_point;
  std::string_view upper;
  std::string_view title;
};
constexpr std::array<LongUpper, 10> kLongUpper = {{
    {0x00df, "SS", "Ss"},
    {0x0149, "\u02bcN", "\u02bcN"},
    {0x01f0, "J\u030c", "J\u030c"},
    {0xfb00, "FF", "Ff"},
    {0xfb01, "FI", "Fi"},
    {0xfb02, "FL", "Fl"},
    {0xfb03, "FFI", "Ffi"},
    {0xfb04, "FFL", "Ffl"},
    {0xfb05, "ST", "St"},
    {0xfb06, "ST", "St"},
}};
constexpr CodePoint kCapitalIWithDot = 0x0130;

const LongUpper* long_upper(CodePoint c) {
  const auto* found =
      std::find_if(kLongUpper.begin(), kLongUpper.end(), [c](const LongUpper& entry) { return entry.code_point == c; });
  return found == kLongUpper.end() ? nullptr : found;
}

void append_upper(std::string& out, CodePoint c) {
  if (const LongUpper* entry = long_upper(c)) {
    out += entry->upper;
  } else {
    append_code_point(out, utf8proc_toupper(c));
  }
}

void append_title(std::string& out, CodePoint c) {
  if (const LongUpper* entry = long_upper(c)) {
    out += entry->title;
  } else {
    append_code_point(out, utf8proc_totitle(c));
  }
}

void append_lower(std::string& out, CodePoint c) {
  if (c == kCapitalIWithDot) {
    out += "i\u0307";
  } else {
    append_code_point(out, utf8proc_tolower(c));
  }
}

template <class Append>
std::string map_code_points(std::string_view text, Append append) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) append(out, next_code_point(text, i));
  return out;
}

bool is_title(CodePoint c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_LT; }

}  // namespace

bool is_valid_utf8(std::string_view text) {
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t size = utf8proc_iterate(data, left, &c);
    if (size <= 0) return false;
    data += size;
    left -= size;
  }
  return true;
}

std::int64_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
}

CodePoint next_code_point(std::string_view text, std::size_t& position) {
  utf8proc_int32_t c = 0;
  position +=
      static_cast<std::size_t>(utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + position),
                                                static_cast<utf8proc_ssize_t>(text.size() - position), &c));
  return c;
}

std::size_t previous_code_point(std::string_view text, std::size_t position) {
  do {
    --position;
  } while ((static_cast<unsigned char>(text[position]) & 0xc0U) == 0x80U);
  return position;
}

std::vector<CodePoint> code_points(std::string_view text) {
  std::vector<CodePoint> out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) out.push_back(next_code_point(text, i));
  return out;
}

void append_code_point(std::string& text, CodePoint code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size));
}

std::size_t byte_offset(std::string_view text, std::int64_t index) {
  std::size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) offset += code_point_size(text[offset]);
  return offset;
}

bool is_space(CodePoint c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
  return c == 0x85 || utf8proc_category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029;
}

bool is_letter(CodePoint c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(CodePoint c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_ND; }

bool is_numeric(CodePoint c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_word(CodePoint c) { return c == '_' || is_letter(c) || is_numeric(c); }

bool is_printable(CodePoint c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7f;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_lower(CodePoint c) { return utf8proc_islower(c) != 0; }
bool is_upper(CodePoint c) { return utf8proc_isupper(c) != 0; }
bool is_cased(CodePoint c) { return is_lower(c) || is_upper(c) || is_title(c); }

std::string to_upper(std::string_view text) { return map_code_points(text, append_upper); }
std::string to_lower(std::string_view text) { return map_code_points(text, append_lower); }

std::string to_title(std::string_view text) {
  bool after_cased = false;
  return map_code_points(text, [&after_cased](std::string& out, CodePoint c) {
    if (after_cased) {
      append_lower(out, c);
    } else {
      append_title(out, c);
    }
    after_cased = is_cased(c);
  });
}

std::string to_capitalized(std::string_view text) {
  std::string out;
  if (text.empty()) return out;
  std::size_t first = 0;
  append_title(out, next_code_point(text, first));
  return out + to_lower(text.substr(first));
}

std::string fold_case(std::string_view text) {
  return map_code_points(text, [](std::string& out, CodePoint c) {
    std::array<CodePoint, 8> folded{};
    int last_class = 0;
    const utf8proc_ssize_t size = utf8proc_decompose_char(
        c, folded.data(), static_cast<utf8proc_ssize_t>(folded.size()), UTF8PROC_CASEFOLD, &last_class);
    for (utf8proc_ssize_t i = 0; i < size; ++i) append_code_point(out, folded[static_cast<std::size_t>(i)]);
  });
}

std::string swap_case(std::string_view text) {
  return map_code_points(text, [](std::string& out, CodePoint c) {
    if (is_upper(c)) {
      append_lower(out, c);
    } else {
      append_upper(out, c);
    }
  });
}

std::string_view strip_left(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    if (!is_space(next_code_point(text, i))) return text.substr(start);
  }
  return text.substr(text.size());
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const std::size_t start = previous_code_point(text, text.size());
    std::size_t i = start;
    if (!is_space(next_code_point(text, i))) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

std::size_t find(std::string_view haystack, std::string_view needle, std::size_t from) {
  if (from > haystack.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // memmem's worst case is linear, std::string_view::find's is the product of the sizes.
  const void* found = memmem(haystack.data() + from, haystack.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - haystack.data());
}

}  // namespace qpn8::jinja
