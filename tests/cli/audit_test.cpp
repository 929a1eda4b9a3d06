// The command audit as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/qpn8_command.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8::test {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

CommandResult audit(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"audit",       "--model", (data() / "tiny-qwen2").string(), "--threads", "1",
                                        "--log-level", "error"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_qpn8(std::move(arguments));
}

TEST(Audit, PassesWithItsGateAndWritesBothReports) {
  const TemporaryFolder folder;
  const CommandResult result = audit({"--gate", "--out", folder / "audit", "--rows", "9", "--outputs", "4096"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(HasSubstr("hold the bounds"), HasSubstr("Gate: all"), HasSubstr("not admitted")));
  EXPECT_THAT(read_text(folder / "audit/audit.md"), HasSubstr("# Operator audit: passed"));
  EXPECT_FALSE(std::filesystem::exists(folder / "audit/audit.json.partial"));
  const Json json = Json::parse(read_text(folder / "audit/audit.json"));
  EXPECT_EQ(json["passed"], true);
  EXPECT_EQ(json["gate"]["passed"], true);
  EXPECT_FALSE(json["gate"]["checks"].empty());
  for (const Json& row : json["rows"]) EXPECT_EQ(row["m"], 9);
  EXPECT_GT(json["plan"]["summary"]["qpn8"], 0);
}

TEST(Audit, WithoutAQpn8ProjectionTheMachineLacksWhatWasAskedFor) {
  const CommandResult result = audit({"--qpn8", "off"});
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("no projection runs on QPN8"));
}

TEST(Audit, BadRowsAreRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"0", "--rows 0: expected 1 to 512"},
                                                                  {"1,513", "--rows 513: expected 1 to 512"},
                                                                  {"1,1", "--rows 1,1: 1 is there twice"},
                                                                  {"1,", "--rows 1,: a number is missing"},
                                                                  {"one", "--rows one: is not an integer"}};
  for (const auto& [rows, message] : cases) {
    const CommandResult result = audit({"--rows", rows});
    EXPECT_EQ(result.status, 2) << rows;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

TEST(Audit, AnImpossibleNumberOfOutputsIsRefused) {
  const CommandResult result = audit({"--outputs", "0"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("--outputs 0: expected 1 to"));
}

}  // namespace
}  // namespace qpn8::test
