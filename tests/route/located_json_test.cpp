#include "route/located_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "route/contract_samples.hpp"

namespace qpn8 {
namespace {

constexpr LocatedJsonLimits kLimits{200, 3};

std::string fault_of(const std::string& text) {
  return test::message_of([&] { parse_located_json(text, "f.json", kLimits); });
}

TEST(LocatedJson, EveryKeyAndElementHasItsLine) {
  const std::string text =
      "\n{\n"
      "  \"a\": 1\n"  // a number that ends with the line
      " ,\n"
      "  \"b\"\n:\n\n[ 1\n, 2,\n"
      "    \"x\\ny\", {\"c\":\ntrue} ]\n"
      "}\n";
  const JsonNode root = parse_located_json(text, "f.json", kLimits);
  EXPECT_EQ(root.line, 2);
  ASSERT_EQ(root.children.size(), 2U);
  EXPECT_EQ(member(root, "a").line, 3);
  const JsonNode& b = member(root, "b");
  EXPECT_EQ(b.line, 5);
  std::vector<int> lines;
  for (const JsonNode& child : b.children) lines.push_back(child.line);
  EXPECT_EQ(lines, (std::vector<int>{8, 9, 10, 10}));
  EXPECT_EQ(member(b.children[3], "c").line, 10);
  EXPECT_EQ(find_member(root, "c"), nullptr);
}

TEST(LocatedJson, SyntaxErrorsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"", "f.json:1: not JSON: "},
      {"{\n\"a\": [1,\n", "f.json:2: not JSON: "},
      {"{\n\"a\" 1\n}", "f.json:2: not JSON: "},
      {"{\n// why\n}", "f.json:2: not JSON: "},
      {"{}\n{}", "f.json:2: not JSON: "},
      {"{\"a\": 1,}", "f.json:1: not JSON: "},
      {"{\n\"\xff\": 1}", "f.json:2: not JSON: "},
      {"[1, 2,\n3", "f.json:2: not JSON: "},
  };
  for (const auto& [text, start] : faults) EXPECT_THAT(fault_of(text), ::testing::StartsWith(start)) << text;
  const std::string long_fault = fault_of("[\"" + std::string(150, 'a') + "\n\"]");
  EXPECT_THAT(long_fault,
              ::testing::AllOf(::testing::HasSubstr("invalid string"), ::testing::Not(::testing::HasSubstr("aaa"))));
}

TEST(LocatedJson, AKeyGivenTwiceIsRefused) {
  EXPECT_EQ(fault_of("{\n\"a\": 1,\n\"a\": 2}"), "f.json:3: \"a\" is given twice");
  EXPECT_EQ(fault_of(R"([{"a": 1}, {"a": 2}])"), "no error");
}

TEST(LocatedJson, SizeAndDepthAreBounded) {
  EXPECT_EQ(fault_of(std::string(199, ' ') + "1"), "no error");
  EXPECT_EQ(fault_of(std::string(200, ' ') + "1"), "f.json:1: 201 bytes, at most 200 are read");
  EXPECT_EQ(fault_of("[[[]]]"), "no error");
  EXPECT_EQ(fault_of("[[\n[[\n]]]]"), "f.json:2: nested deeper than 3 levels");
}

TEST(NodeReader, IntegersBeyondInt64AreRefusedNotWrapped) {
  const NodeReader reader("f.json");
  const JsonNode root = parse_located_json("[18446744073709551615, 1.0, -1, 1e3, 7]", "f.json", kLimits);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NE(test::message_of([&] { reader.integer(root.children[i], 0, 10); }), "no error") << i;
  }
  EXPECT_EQ(reader.integer(root.children[4], 0, 10), 7);
}

}  // namespace
}  // namespace qpn8
