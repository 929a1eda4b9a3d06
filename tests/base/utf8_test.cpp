#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace qpn8 {
namespace {

bool is_scalar(char32_t value) { return value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF); }

TEST(Utf8, CodePointsOfEveryLengthRoundTrip) {
  for (char32_t value = 0; value <= 0x10FFFF; value += value < 0x3000 ? 1 : 7) {
    if (!is_scalar(value)) continue;
    std::string bytes;
    append_code_point(bytes, value);
    ASSERT_TRUE(is_well_formed(bytes)) << static_cast<long>(value);
    const CodePoint forward = code_point_at(bytes, 0);
    ASSERT_EQ(forward.value, value);
    ASSERT_EQ(forward.size, bytes.size());
    ASSERT_EQ(code_point_before(bytes, bytes.size()).value, value);
  }
}

// Counting what is accepted catches a bound that is off by one anywhere in the first two bytes.
TEST(Utf8, ExactlyTheSequencesOfTheStandardAreWellFormed) {
  long well_formed = 0;
  for (unsigned lead = 0x80; lead < 0x100; ++lead) {
    for (unsigned second = 0; second < 0x100; ++second) {
      for (const char third : {'\x7F', '\x80', '\xBF', '\xC0'}) {
        const std::string bytes = {static_cast<char>(lead), static_cast<char>(second), third};
        if (is_well_formed(bytes)) ++well_formed;
      }
    }
  }
  const long two_bytes = 0x800 - 0x80;                                   // and U+007F behind them
  const long first_two_of_three_bytes = (0x10000 - 0x800 - 0x800) / 64;  // without the surrogates
  EXPECT_EQ(well_formed, two_bytes + 2 * first_two_of_three_bytes);
}

TEST(Utf8, EachIllFormedSequenceBecomesOneReplacement) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(to_well_formed("a\x80z"), "a" + r + "z");  // a continuation without a lead
  EXPECT_EQ(to_well_formed("\xE2\x82z"), r + "z");     // cut short by another character
  EXPECT_EQ(to_well_formed("\xE2\x82"), r);            // cut short by the end
  EXPECT_EQ(to_well_formed("\xF0\x9F\x98"), r);
  EXPECT_EQ(to_well_formed("\xC0\xAF"), r + r);  // overlong
  EXPECT_EQ(to_well_formed("\xE0\x80\xAF"), r + r + r);
  EXPECT_EQ(to_well_formed("\xED\xA0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(to_well_formed("\xF4\x90\x80\x80"), r + r + r + r);  // beyond U+10FFFF
  EXPECT_EQ(to_well_formed("\xF8\x88"), r + r);
}

TEST(Utf8, AssemblesWhatCameInPieces) {
  const std::string text = "a\u00E9\u20AC\U0001F600\x80z";
  for (std::size_t size = 1; size < text.size(); ++size) {
    Utf8Assembler assembler;
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) {
      assembler.push(text.substr(at, size), out);
      EXPECT_TRUE(is_well_formed(out));
    }
    assembler.finish(out);
    EXPECT_EQ(out, to_well_formed(text)) << size;
  }
}

}  // namespace
}  // namespace qpn8
