#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace qpn8 {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

/// What the bytes at one position of a text are, as table 3-7 of the Unicode standard has it.
struct Utf8Sequence {
  enum class Kind : std::uint8_t {
    complete,    ///< one code point
    ill_formed,  ///< the longest beginning of a code point, cut short by something else; at least one byte
    incomplete,  ///< the beginning of a code point that the end of the text cuts short
  };
  Kind kind = Kind::complete;
  std::size_t size = 0;
};

/// The first sequence of a text that is not empty.
Utf8Sequence first_sequence(std::string_view bytes);

bool is_well_formed(std::string_view bytes);

/// The text with each ill-formed or incomplete sequence replaced by one U+FFFD.
std::string to_well_formed(std::string_view bytes);

/// A code point of a well-formed text and how many bytes it takes.
struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;
};

/// `text` is well-formed and `at` the beginning of a code point in it.
CodePoint code_point_at(std::string_view text, std::size_t at);

/// `at` is behind the end of a code point: the one before it.
CodePoint code_point_before(std::string_view text, std::size_t at);

void append_code_point(std::string& text, char32_t value);

/// Makes well-formed text of bytes that come in pieces which may cut through a code point.
class Utf8Assembler {
 public:
  /// Appends to `out` what became certain with these bytes.
  void push(std::string_view bytes, std::string& out);
  /// Appends U+FFFD for a sequence that never was completed.
  void finish(std::string& out);

 private:
  std::string pending_;  // the incomplete sequence at the end, at most three bytes between calls
};

}  // namespace qpn8
