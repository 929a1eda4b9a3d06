#include "base/json_lines.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for_each_json_line(stream, "f.jsonl", [&](const nlohmann::ordered_json& object, std::int64_t line) {
    lines.push_back(std::to_string(line) + " " + object.dump());
  });
  return lines;
}

std::string fault_of(const std::string& text) {
  return test::error_of([&] { lines_of(text); });
}

TEST(JsonLines, SkipsBlankLinesCountsThemAndKeepsTheOrderOfKeys) {
  EXPECT_EQ(lines_of("{\"b\":1,\"a\":2}\n\n \t\r\n{}\r\n{\"z\":[]}"),
            (std::vector<std::string>{R"(1 {"b":1,"a":2})", "4 {}", R"(5 {"z":[]})"}));
}

TEST(JsonLines, EveryFaultNamesTheFileAndTheLine) {
  EXPECT_EQ(fault_of("{}\n[1]\n"), "f.jsonl:2: is an array, expected one JSON object a line");
  EXPECT_EQ(fault_of("{}\n\n{\"a\": }"),
            "f.jsonl:3:7: not valid JSON: unexpected '}'; expected '[', '{', or a literal");
  EXPECT_EQ(fault_of("{}\n{\"a\": 1, \"a\": 2}"), "f.jsonl:2:12: key \"a\" stands twice in one object");
  EXPECT_EQ(fault_of(std::string("{}\n{}\0 lost", 11)), "f.jsonl:2:3: a NUL byte, which JSON text cannot hold");
  EXPECT_EQ(fault_of(std::string("{}\n\0\n", 5)), "f.jsonl:2:1: a NUL byte, which JSON text cannot hold");
  EXPECT_EQ(fault_of("{\"a\": " + std::string(1'000'000, '[')), "f.jsonl:1:70: nested more than 64 deep");
}

TEST(JsonLines, AStreamThatCannotBeReadIsNotTheEndOfTheFile) {
  const test::TemporaryFolder folder;
  std::ifstream stream(folder.path());
  EXPECT_EQ(test::error_of([&] { for_each_json_line(stream, "f", [](const auto&, std::int64_t) {}); }),
            "f: cannot be read to its end");
}

}  // namespace
}  // namespace qpn8
