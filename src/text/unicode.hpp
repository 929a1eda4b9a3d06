#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qpn8::text {

/// The property White_Space.
bool is_space(char32_t value);
/// The general categories Nd, Nl and No.
bool is_numeric(char32_t value);
/// The general categories Mn, Mc and Me.
bool is_mark(char32_t value);
/// What a regular expression calls a word character: alphabetic, a mark, a decimal digit, connecting punctuation.
bool is_word(char32_t value);

/// Each code point of a well-formed text by itself in lower case.
std::string to_lower(std::string_view text);

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// A normal form of a well-formed text. Time is O(n log n) even where a character carries very many marks.
std::string normalize(std::string_view text, NormalForm form);

}  // namespace qpn8::text
