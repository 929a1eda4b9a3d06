#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/tokenizers.hpp"
#include "text/normalizer.hpp"
#include "text/pre_tokenizer.hpp"

namespace qpn8::text {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

Strings words(const std::string& pre_tokenizer, const std::string& text, bool starts_input = true) {
  const json file = json::parse(pre_tokenizer);
  Strings result;
  for (const Segment& word : PreTokenizer::parse(JsonView(file, "t.json")).apply({text, starts_input})) {
    result.push_back(word.text);
  }
  return result;
}

std::string normalized(const std::string& normalizer, const std::string& text) {
  const json file = json::parse(normalizer);
  Segment segment{text, true};
  Normalizer::parse(JsonView(file, "t.json")).apply(segment);
  return segment.text;
}

std::string split_at(const std::string& pattern, const std::string& behavior, bool invert = false) {
  return json{{"type", "Split"}, {"pattern", json::parse(pattern)}, {"behavior", behavior}, {"invert", invert}}.dump();
}

TEST(Split, DoesWithTheMatchesWhatTheBehaviorSays) {
  const std::string dash = R"({"String": "-"})";
  const std::string text = "the-final--countdown";
  EXPECT_EQ(words(split_at(dash, "Isolated"), text), (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(words(split_at(dash, "Removed"), text), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(words(split_at(dash, "MergedWithPrevious"), text), (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(words(split_at(dash, "MergedWithNext"), text), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(words(split_at(dash, "Contiguous"), text), (Strings{"the", "-", "final", "--", "countdown"}));
}

TEST(Split, InvertedTakesTheRestForTheMatches) {
  const std::string letters = R"({"Regex": "[a-z]+"})";
  EXPECT_EQ(words(split_at(letters, "Removed", true), "ab-cd"), (Strings{"ab", "cd"}));
  EXPECT_EQ(words(split_at(letters, "Removed", false), "ab-cd"), (Strings{"-"}));
}

TEST(Split, OfATextOfMatchesAloneLosesNothing) {
  for (const std::string behavior : {"Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}) {
    std::string joined;
    for (const std::string& word : words(split_at(R"({"String": "-"})", behavior), "---")) joined += word;
    EXPECT_EQ(joined, "---") << behavior;
  }
}

TEST(Digits, AreSplitOneByOneOrTogether) {
  EXPECT_EQ(words(R"({"type": "Digits", "individual_digits": true})", "a12\u00BD"), (Strings{"a", "1", "2", "\u00BD"}));
  EXPECT_EQ(words(R"({"type": "Digits", "individual_digits": false})", "a12\u00BDb"), (Strings{"a", "12\u00BD", "b"}));
}

TEST(Metaspace, PutsItsMarkBeforeTheTextAsTheSchemeSays) {
  const auto with = [](const std::string& scheme) {
    return R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": ")" + scheme + R"("})";
  };
  EXPECT_EQ(words(with("always"), "a b"), (Strings{"_a", "_b"}));
  EXPECT_EQ(words(with("always"), "a b", false), (Strings{"_a", "_b"}));
  EXPECT_EQ(words(with("first"), "a b"), (Strings{"_a", "_b"}));
  EXPECT_EQ(words(with("first"), "a b", false), (Strings{"a", "_b"}));
  EXPECT_EQ(words(with("never"), "a b"), (Strings{"a", "_b"}));
  EXPECT_EQ(words(with("always"), " a"), (Strings{"_a"})) << "a mark that is there is not put again";
  EXPECT_EQ(words(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false, "prepend_scheme": "never"})",
                  "a b"),
            (Strings{"a", "_b"}));
  EXPECT_EQ(words(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": true, "split": false})", "a b"),
            (Strings{"_a_b"}));
}

TEST(ByteLevel, SpellsBytesAndSplitsWhereAsked) {
  EXPECT_EQ(words(R"({"type": "ByteLevel", "add_prefix_space": true})", "a's \u00E9"),
            (Strings{"\u0120a", "'s", "\u0120\u00C3\u00A9"}));
  EXPECT_EQ(words(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})", "a b"),
            (Strings{"a\u0120b"}));
}

TEST(PreTokenizer, OfNothingGivesNothing) {
  EXPECT_EQ(words(R"({"type": "ByteLevel"})", ""), Strings{});
  EXPECT_EQ(words(R"({"type": "Metaspace", "replacement": "_"})", ""), Strings{});
  EXPECT_EQ(words("null", "a b"), (Strings{"a b"}));
}

TEST(Normalizer, StepsRunInTheirOrder) {
  EXPECT_EQ(normalized(R"({"type": "Sequence", "normalizers": [
                            {"type": "Strip", "strip_left": true, "strip_right": false},
                            {"type": "Prepend", "prepend": "_"},
                            {"type": "Replace", "pattern": {"String": " "}, "content": "_"}]})",
                       "  a b "),
            "_a_b_");
}

TEST(Normalizer, EachStepDoesItsWork) {
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "\u00C4B"), "\u00E4b");
  EXPECT_EQ(normalized(R"({"type": "StripAccents"})", "e\u0301\u0301x"), "ex");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "\u3000 a\t"), "a");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " \u2003 "), "");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "_"})", ""), "") << "nothing is put before nothing";
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": ""})", "xabay"), "xy");
}

}  // namespace
}  // namespace qpn8::text
