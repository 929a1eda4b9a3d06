#include "text/added_tokens.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace qpn8::text {
namespace {

AddedToken token(TokenId id, const std::string& spelling) {
  AddedToken result;
  result.id = id;
  result.content = result.spelling = spelling;
  return result;
}

/// The parts of a text: "[id:text]" for a token, the text itself for the rest.
std::string split(const std::vector<AddedToken>& tokens, const std::string& text) {
  std::string result;
  for (const AddedTokenPart& part : AddedTokenMatcher(tokens).split(text)) {
    const std::string piece = text.substr(part.range.begin, part.range.end - part.range.begin);
    result += part.token ? "[" + std::to_string(*part.token) + ":" + piece + "]" : piece + "|";
  }
  return result;
}

TEST(AddedTokens, TheLeftmostAndThenTheLongestCounts) {
  const std::vector<AddedToken> tokens = {token(1, "ab"), token(2, "abcd"), token(3, "b"), token(4, "bcdef")};
  EXPECT_EQ(split(tokens, "xabcdefb"), "x|[2:abcd]ef|[3:b]");
  EXPECT_EQ(split(tokens, "abc"), "[1:ab]c|");
  EXPECT_EQ(split(tokens, "abab"), "[1:ab][1:ab]");
  EXPECT_EQ(split(tokens, "bcde"), "[3:b]cde|");
  EXPECT_EQ(split(tokens, ""), "");
  EXPECT_EQ(split({}, "ab"), "ab|");
}

TEST(AddedTokens, OfManyEachIsFound) {
  std::vector<AddedToken> tokens;
  for (TokenId id = 0; id < 500; ++id) tokens.push_back(token(id, "<" + std::to_string(id) + ">"));
  for (TokenId id = 0; id < 500; ++id) {
    const std::string name = "<" + std::to_string(id) + ">";
    EXPECT_EQ(split(tokens, "a" + name), "a|[" + std::to_string(id) + ":" + name + "]");
  }
}

TEST(AddedTokens, ASingleWordTouchesNoWordCharacter) {
  AddedToken word = token(1, "foo");
  word.single_word = true;
  EXPECT_EQ(split({word}, "foo"), "[1:foo]");
  EXPECT_EQ(split({word}, "a foo."), "a |[1:foo].|");
  for (const std::string text : {"foob", "afoo", "foo_", "1foo", "foo\u0301", "\u00E9foo"}) {
    EXPECT_EQ(split({word}, text), text + "|");
  }
}

TEST(AddedTokens, TakeWhiteSpaceAlongOnTheSidesTheySay) {
  AddedToken left = token(1, "<l>");
  left.lstrip = true;
  AddedToken right = token(2, "<r>");
  right.rstrip = true;
  EXPECT_EQ(split({left, right}, "a \u3000<l> b <r>\n c"), "a|[1: \u3000<l>] b |[2:<r>\n ]c|");
  EXPECT_EQ(split({left, right}, "<r>  <l>"), "[2:<r>  ][1:<l>]");
  EXPECT_EQ(split({left, right}, "  <l>"), "[1:  <l>]");
}

TEST(AddedTokens, InsideWhiteSpaceThatAnotherTookAlongStillCount) {
  AddedToken right = token(1, "<r>");
  right.rstrip = true;
  EXPECT_EQ(split({right, token(2, "\n")}, "<r> \nx"), "[1:<r> \n][2:\n]x|");
}

}  // namespace
}  // namespace qpn8::text
