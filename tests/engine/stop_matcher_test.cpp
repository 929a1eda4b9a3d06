#include "engine/stop_matcher.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

struct Outcome {
  std::string text;
  bool matched = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '"' << outcome.text << "\" " << (outcome.matched ? "matched" : "not matched");
}

Outcome feed(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  std::string text;
  for (const std::string& piece : pieces) text += matcher.push(piece);
  text += matcher.finish();
  return {text, matcher.matched()};
}

// By the definition: the stop text that ends first wins, of several that end there the longest.
Outcome by_definition(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopMatcher, WithoutStopTextsEverythingIsCertainAtOnce) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.push("abc"), "abc");
  EXPECT_EQ(matcher.push(""), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, AStopTextAcrossPiecesIsFoundAndNothingOfItShown) {
  EXPECT_EQ(feed({"</end>"}, {"one ", "<", "/e", "nd", "> two"}), (Outcome{"one ", true}));
}

TEST(StopMatcher, TextIsHeldBackOnlyWhileItMayBecomeAStopText) {
  const std::vector<std::string> stops = {"abcd"};
  StopMatcher matcher(stops);
  EXPECT_EQ(matcher.push("xab"), "x");
  EXPECT_EQ(matcher.push(""), "");
  EXPECT_EQ(matcher.push("c"), "");
  EXPECT_EQ(matcher.push("a"), "abc");
  EXPECT_EQ(matcher.push("bx"), "abx");
  EXPECT_EQ(matcher.push("abc"), "");
  EXPECT_EQ(matcher.finish(), "abc");
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, TheFirstToEndWinsAndOfThoseTheLongest) {
  EXPECT_EQ(feed({"abcd", "bc"}, {"xabcd"}), (Outcome{"xa", true}));
  EXPECT_EQ(feed({"c", "abc"}, {"xabc"}), (Outcome{"x", true}));
}

TEST(StopMatcher, NothingComesAfterAMatch) {
  const std::vector<std::string> stops = {"s"};
  StopMatcher matcher(stops);
  EXPECT_EQ(matcher.push("as more"), "a");
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, AnEmptyStopTextIsRefused) {
  const std::vector<std::string> stops = {"a", ""};
  test::expect_error(
      Error::bad_argument, [&] { StopMatcher matcher(stops); }, testing::HasSubstr("must not be empty"));
}

TEST(StopMatcher, AnyCutOfAnyTextGivesWhatTheDefinitionSays) {
  Random random(11);
  const auto random_text = [&](std::uint64_t most) {
    std::string text(1 + random.below(most), 'a');
    for (char& c : text) c = static_cast<char>('a' + random.below(2));  // two letters: overlaps are frequent
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> stops;
    for (std::uint64_t i = random.below(4); i > 0; --i) stops.push_back(random_text(6));
    const std::string text = random_text(24);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size(); at += pieces.back().size()) {
      pieces.push_back(text.substr(at, 1 + random.below(5)));
    }
    EXPECT_EQ(feed(stops, pieces), by_definition(stops, text)) << text << " " << testing::PrintToString(stops);
  }
}

}  // namespace
}  // namespace qpn8
