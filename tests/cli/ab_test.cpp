// The commands ab and score as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/qpn8_command.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8::test {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

CommandResult compare(const TemporaryFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "ab",    "--model",     bundled_model(), "--dataset", repository() / "models/wordmath_test.jsonl",
      "--out", folder / "ab", "--threads",     "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_qpn8(std::move(arguments));
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

const std::vector<std::string> kRoutes = {"--a", "qpn8=off", "--b", "qpn8=require"};

std::vector<std::string> routes_and(std::vector<std::string> more) {
  more.insert(more.begin(), kRoutes.begin(), kRoutes.end());
  return more;
}

TEST(Ab, RunsBothRoutesInterleavedAndWritesTheDocumentedKeys) {
  const TemporaryFolder folder;
  const CommandResult result = compare(folder, routes_and({"--limit", "2"}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("verdict"));

  std::vector<std::string> order;
  for (const Json& line : json_lines(read_text(folder / "ab/items.jsonl"))) order.push_back(line["arm"]);
  EXPECT_EQ(order.size(), 6U);

  const Json json = Json::parse(read_text(folder / "ab/result.json"));
  for (const char* arm : {"a", "b", "aa"}) {
    EXPECT_EQ(json["arms"][arm]["count"], 2);
    EXPECT_EQ(json["arms"][arm]["correct"], 2) << "the bundled model answers both";
    EXPECT_GT(json["arms"][arm]["decode_tokens_per_s"]["median"], 0.0);
  }
  EXPECT_EQ(json["paired"]["items"], 2);
  EXPECT_EQ(json["paired"]["both"], 2);
  EXPECT_EQ(json["paired"]["mcnemar_p"], 1.0);
  EXPECT_EQ(json["plan"]["summary"]["qpn8"], 25);
  EXPECT_EQ(json["verdict"]["quality"], "undecided") << "two items cannot show a difference of two points";
}

TEST(Ab, ACutRunGoesOnWhereItWasAndGivesTheSameItems) {
  const TemporaryFolder folder;
  ASSERT_EQ(compare(folder, routes_and({"--limit", "3"})).status, 0);
  const std::string whole = read_text(folder / "ab/items.jsonl");
  std::filesystem::remove(folder / "ab/result.json");
  write_text(folder / "ab/items.jsonl", whole.substr(0, whole.find('\n', whole.size() / 2) + 20));
  const CommandResult again = compare(folder, routes_and({"--limit", "3", "--resume"}));
  ASSERT_EQ(again.status, 0) << again.err;
  const std::vector<Json> before = json_lines(whole);
  const std::vector<Json> after = json_lines(read_text(folder / "ab/items.jsonl"));
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i]["arm"], before[i]["arm"]) << i;
    EXPECT_EQ(after[i]["index"], before[i]["index"]) << i;
    EXPECT_EQ(after[i]["output_ids"], before[i]["output_ids"]) << i;
  }
}

TEST(Ab, ACandidateWithoutAQpn8ProjectionIsAnErrorAndNotATie) {
  const TemporaryFolder folder;
  const CommandResult result = compare(folder, {"--a", "qpn8=off", "--b", "qpn8=off", "--limit", "2"});
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, HasSubstr("QPN8"));
  EXPECT_EQ(result.out, "");
}

TEST(Ab, AnUnknownArgumentOfAnArmListsTheKnownOnes) {
  const TemporaryFolder folder;
  const CommandResult result = compare(folder, {"--a", "quantum=1", "--limit", "2"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("quantum"));
  EXPECT_THAT(result.err, HasSubstr("kv_dtype"));
}

CommandResult score(const std::string& input) {
  Command command = qpn8_command({"score", "-"});
  command.input = input;
  return run_command(command);
}

TEST(Score, WritesALineALine) {
  const CommandResult result = score(
      "{\"text\": \"so \\\\boxed{42}\", \"answer\": \"40 + 2\\n#### 42\"}\n"
      "{\"text\": \"no idea\", \"answer\": \"7\"}\n");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(json_lines(result.out), ElementsAre(Json{{"value", 42}, {"expected", 42}, {"correct", true}},
                                                  Json{{"value", nullptr}, {"expected", 7}, {"correct", false}}));
}

TEST(Score, AGoldAnswerThatDoesNotParseIsAnErrorOfItsLine) {
  const CommandResult result =
      score("{\"text\": \"7\", \"answer\": \"7\"}\n{\"text\": \"7\", \"answer\": \"seven\"}\n");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr(":2"));
  EXPECT_THAT(result.err, Not(HasSubstr("\n\n")));
}

}  // namespace
}  // namespace qpn8::test
