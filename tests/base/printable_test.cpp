#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace qpn8 {
namespace {

TEST(Printable, EscapesControlCharactersAndKeepsTheRest) {
  EXPECT_EQ(printable("a\nb\x7f\x1b[0m é"), "a\\x0ab\\x7f\\x1b[0m é");
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("abé", 3), "ab...");
  EXPECT_EQ(printable("\xbf\xbf\xbf", 2), "...");
}

}  // namespace
}  // namespace qpn8
