#include "text/unicode.hpp"

#include <gtest/gtest.h>

#include <string>

namespace qpn8::text {
namespace {

TEST(Unicode, NormalFormsOfKnownTexts) {
  struct Case {
    std::string text, nfc, nfd, nfkc, nfkd;
  };
  const Case cases[] = {
      {"plain", "plain", "plain", "plain", "plain"},
      {"e\u0301", "\u00E9", "e\u0301", "\u00E9", "e\u0301"},
      {"\u212B", "\u00C5", "A\u030A", "\u00C5", "A\u030A"},
      {"\uFB01", "\uFB01", "\uFB01", "fi", "fi"},
      {"\uD55C", "\uD55C", "\u1112\u1161\u11AB", "\uD55C", "\u1112\u1161\u11AB"},
      {"a\u0301\u0323", "\u1EA1\u0301", "a\u0323\u0301", "\u1EA1\u0301", "a\u0323\u0301"},
      {"\u0958", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C"},  // excluded from composition
      {std::string("a\0\u00E9", 4), std::string("a\0\u00E9", 4), std::string("a\0e\u0301", 5),
       std::string("a\0\u00E9", 4), std::string("a\0e\u0301", 5)},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(normalize(one.text, NormalForm::nfc), one.nfc);
    EXPECT_EQ(normalize(one.text, NormalForm::nfd), one.nfd);
    EXPECT_EQ(normalize(one.text, NormalForm::nfkc), one.nfkc);
    EXPECT_EQ(normalize(one.text, NormalForm::nfkd), one.nfkd);
  }
}

TEST(Unicode, VeryManyMarksOnOneCharacterAreOrdered) {
  std::string mixed = "a";
  std::string ordered = "a";
  for (int i = 0; i < 50'000; ++i) mixed += "\u0301\u0323";
  for (int i = 0; i < 50'000; ++i) ordered += "\u0323";
  for (int i = 0; i < 50'000; ++i) ordered += "\u0301";
  EXPECT_EQ(normalize(mixed, NormalForm::nfd), ordered);
}

TEST(Unicode, LowerCaseIsOfEachCodePoint) {
  EXPECT_EQ(to_lower("A\u00C4\u0130\u03A3\u01C5z1"), "a\u00E4i\u0307\u03C3\u01C6z1");
}

TEST(Unicode, ClassesOfCharacters) {
  for (const char32_t space : {U'\t', U' ', U'\u0085', U'\u00A0', U'\u2003', U'\u3000'}) EXPECT_TRUE(is_space(space));
  for (const char32_t other : {U'a', U'\u180E', U'\u200B', U'\uFEFF'}) EXPECT_FALSE(is_space(other));
  for (const char32_t number : {U'7', U'\u0663', U'\u2167', U'\u00BD'}) EXPECT_TRUE(is_numeric(number));
  EXPECT_FALSE(is_numeric(U'\u4E00'));
  EXPECT_TRUE(is_mark(U'\u0301'));
  EXPECT_FALSE(is_mark(U'e'));
  for (const char32_t word : {U'a', U'_', U'9', U'\u0301', U'\u200D', U'\u24B6'}) EXPECT_TRUE(is_word(word));
  for (const char32_t other : {U'-', U' ', U'\u00BD', U'\u20AC'}) EXPECT_FALSE(is_word(other));
}

}  // namespace
}  // namespace qpn8::text
