#include "text/regex.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "qpn8/error.hpp"
#include "text/regex_syntax.hpp"

namespace qpn8::text {
namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  std::vector<std::string> found;
  for (const Range& range : Regex(pattern, "t.json: key").find_all(text)) {
    found.push_back(text.substr(range.begin, range.end - range.begin));
  }
  return found;
}

using Strings = std::vector<std::string>;

// Expected values are what Oniguruma matches.
TEST(Regex, ClassesMatchWhatTheyMatchInOniguruma) {
  EXPECT_EQ(matches("\\s", "a\u0085\u00A0\u180E\u3000"), (Strings{"\u0085", "\u00A0", "\u3000"}));
  EXPECT_EQ(matches("[^\\S\\n]+", " \n\t"), (Strings{" ", "\t"}));
  EXPECT_EQ(matches("\\w+", "a_1 e\u0301\u00BD-\u24B6\u2163"), (Strings{"a_1", "e\u0301\u00BD", "\u24B6\u2163"}));
  EXPECT_EQ(matches("[^\\w]", "a\u00BD"), (Strings{"\u00BD"}));
  EXPECT_EQ(matches("\\h+", "xfF0g"), (Strings{"fF0"}));
  EXPECT_EQ(matches("[[:punct:]]", "a+\u20AC!"), (Strings{"+", "\u20AC", "!"}));
  EXPECT_EQ(matches("[[:alpha:]]+", "a\u24B61"), (Strings{"a\u24B6"}));
  EXPECT_EQ(matches("\\p{Han}+", "\u65E5\u672C\u3005\u306E\u3001"), (Strings{"\u65E5\u672C\u3005"}));
  EXPECT_EQ(matches("\\p{^L}\\P{L}", "a1 b"), (Strings{"1 "}));
  EXPECT_EQ(matches("[\\u0061-\\u0063]+", "xabcd"), (Strings{"abc"}));
}

TEST(Regex, RubysSyntaxIsRead) {
  EXPECT_EQ(matches("^b", "a\nb"), (Strings{"b"}));
  EXPECT_EQ(matches("a$", "a\nb"), (Strings{"a"}));
  EXPECT_EQ(matches("a.b", "a\nb"), Strings{});
  EXPECT_EQ(matches("(?m:a.b)", "a\nb"), (Strings{"a\nb"}));
  EXPECT_EQ(matches("ba{,2}", "baaab"), (Strings{"baa", "b"}));
  EXPECT_EQ(matches("[]a]+", "b]a"), (Strings{"]a"}));
  EXPECT_EQ(matches("(?i:'s|'t)", "'S'\u017F"), (Strings{"'S", "'\u017F"}));
}

TEST(Regex, WhatTheEnginesReadDifferentlyIsRefused) {
  for (const std::string pattern : {"[a&&b]", "[a[bc]]", "a{1,3}+", "a{3}?", "\\bx", "\\K", "\\Qx", "(*UTF)a", "(?R)",
                                    "(?C1)", "(?P<a>b)", "\\pL", "[\\W]", "[[:graph:]]", "\\X"}) {
    try {
      const Regex regex(pattern, "t.json: key");
      ADD_FAILURE() << pattern << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::unsupported) << pattern;
      EXPECT_THAT(error.what(), ::testing::StartsWith("t.json: key: "));
    }
  }
}

TEST(Regex, WhatDoesNotCompileIsABadFile) {
  for (const std::string pattern : {"(", "[a", "a**b(", "\\", "\\p{NoSuchProperty}", "(?<=a*)b"}) {
    try {
      const Regex regex(pattern, "t.json: key");
      ADD_FAILURE() << pattern << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::bad_file) << pattern;
    }
  }
}

TEST(Regex, EmptyMatchesAdvance) {
  EXPECT_EQ(matches("x*", "axx\u00E9x"), (Strings{"", "xx", "x"}));
  EXPECT_EQ(matches("(?=a)", "baa"), (Strings{"", ""}));
  EXPECT_EQ(matches("x*", ""), (Strings{""}));
}

// Giving up silently would split at the wrong places.
TEST(Regex, ASearchWithoutEndIsAnErrorThatNamesThePattern) {
  const Regex regex("(?:a|aa|aaa)+[bc]", "t.json: pre_tokenizer.pattern.Regex");
  try {
    regex.find_all(std::string(100, 'a'));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::bad_value);
    EXPECT_THAT(error.what(), ::testing::StartsWith("t.json: pre_tokenizer.pattern.Regex: "));
  }
}

TEST(Regex, LongTextsNeedNoDeepStack) {
  const std::string text = std::string(50'000, ' ') + std::string(50'000, 'a') + std::string(50'000, '\n');
  EXPECT_EQ(matches("(?:\\s|a)+", text).size(), 1U);
  EXPECT_EQ(matches("(\\p{L}+|\\s+(?!\\S)|\\s)", text).size(), 4U);
}

}  // namespace
}  // namespace qpn8::text
