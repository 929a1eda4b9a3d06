#include "route/located_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "route/contract_samples.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

constexpr JsonLimits kLimits = {.bytes = 200, .depth = 3};

std::string fault_of(const std::string& text) {
  return test::error_of([&] { parse_located_json(text, "f.json", kLimits); });
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
  std::vector<std::int64_t> lines;
  for (const JsonNode& child : b.children) lines.push_back(child.line);
  EXPECT_EQ(lines, (std::vector<std::int64_t>{8, 9, 10, 10}));
  EXPECT_EQ(member(b.children[3], "c").line, 10);
  EXPECT_EQ(find_member(root, "c"), nullptr);
}

TEST(LocatedJson, FaultsOfTheTextNameLineAndColumn) {
  EXPECT_THAT(fault_of("{\n\"a\": [1,\n"), ::testing::StartsWith("f.json:2:9: not valid JSON: "));
  EXPECT_EQ(fault_of("{\n\"a\": 1,\n\"a\": 2}"), "f.json:3:3: key \"a\" stands twice in one object");
  EXPECT_EQ(fault_of(R"([{"a": 1}, {"a": 2}])"), "(no error)");
  EXPECT_EQ(fault_of("[[\n[[\n]]]]"), "f.json:2:2: nested more than 3 deep");
  EXPECT_EQ(fault_of(std::string(200, ' ') + "1"), "f.json: is 201 bytes long, expected at most 200");
}

TEST(NodeReader, IntegersBeyondInt64AreRefusedNotWrapped) {
  const NodeReader reader("f.json");
  const JsonNode root = parse_located_json("[18446744073709551615, 1.0, -1, 1e3, 7]", "f.json", kLimits);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NE(test::error_of([&] { reader.integer(root.children[i], 0, 10); }), "(no error)") << i;
  }
  EXPECT_EQ(reader.integer(root.children[4], 0, 10), 7);
}

}  // namespace
}  // namespace qpn8
