#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace qpn8 {
namespace {

TEST(Printable, EscapesControlCharactersAndKeepsTheRest) {
  EXPECT_EQ(printable("a\nb\x7f\x1b[0m é"), "a\\x0ab\\x7f\\x1b[0m é");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "a terminal takes C1's CSI for an escape";
  EXPECT_EQ(printable("a\xe2\x80\xa8z"), "a\\xe2\\x80\\xa8z") << "the line separator";
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("a\xff z"), "a\\xff z");
  EXPECT_EQ(printable("cut \xe2\x80"), "cut \\xe2\\x80");
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("abé", 3), "ab...");
  EXPECT_EQ(printable("\xbf\xbf\xbf", 2), "\\xbf\\xbf...");
  EXPECT_EQ(printable("é", 0), "...");
}

TEST(InQuotes, MarksTheQuotesThatAreTheTextsOwn) {
  EXPECT_EQ(in_quotes("a\"b\\c\nd"), R"("a\"b\\c\x0ad")");
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("abcdef", 3), "\"abc...\"");
}

}  // namespace
}  // namespace qpn8
