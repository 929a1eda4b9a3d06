// The commands ab and score as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/folder_lock.hpp"
#include "cli/qpn8_command.hpp"
#include "evidence/output_metrics.hpp"
#include "support/fake_server.hpp"
#include "support/model_copy.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8::test {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

std::string endpoint(const FakeServer& server) { return "endpoint=" + server.url(); }

TEST(Ab, EndsWithStatus1WhereTheCandidateIsInferior) {
  const TemporaryFolder folder;
  std::string problems;
  for (int i = 0; i < 60; ++i)
    problems += R"({"question": "How many?", "answer": "#### 4"})"
                "\n";
  folder.write("problems.jsonl", problems);
  const FakeServer right({events({delta("It is "), delta("\\boxed{4}"), kStop, "[DONE]"})});
  const FakeServer wrong({events({delta("It is "), delta("\\boxed{5}"), kStop, "[DONE]"})});
  const auto run = [&](const FakeServer& a, const FakeServer& b, const char* out) {
    return run_qpn8({"ab", "--dataset", folder / "problems.jsonl", "--out", folder / out, "--a", endpoint(a), "--a",
                     "model=one", "--b", endpoint(b), "--b", "model=two"});
  };
  const CommandResult result = run(right, wrong, "worse");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("the verdict is inferior: accuracy of B minus A is -100.00 points"));
  EXPECT_THAT(result.out, HasSubstr("verdict     inferior"));
  EXPECT_EQ(Json::parse(read_text(folder / "worse/result.json"))["verdict"]["quality"], "inferior");

  EXPECT_EQ(run(wrong, right, "better").status, 0) << "the better candidate is no failure";
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

/// Runs three items, has `change` alter the log, and resumes.
CommandResult resume_after(const TemporaryFolder& folder, const std::function<std::string(std::string)>& change) {
  EXPECT_EQ(compare(folder, routes_and({"--limit", "3"})).status, 0);
  std::filesystem::remove(folder / "ab/result.json");
  write_text(folder / "ab/items.jsonl", change(read_text(folder / "ab/items.jsonl")));
  return compare(folder, routes_and({"--limit", "3", "--resume"}));
}

TEST(Ab, AnItemMissingInTheMiddleOfTheLogIsRunAndComesWhereItBelongs) {
  const TemporaryFolder folder;
  const CommandResult result = resume_after(folder, [](const std::string& text) {
    std::string kept;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (Json::parse(line)["index"] != 1) kept += line + "\n";
    }
    return kept;
  });
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(read_text(folder / "ab/result.json"));
  EXPECT_EQ(json["paired"]["items"], 3);
}

TEST(Ab, ALogWithAnItemOfAnotherRunIsRefused) {
  const TemporaryFolder folder;
  const CommandResult result = resume_after(folder, [](const std::string& text) {
    std::string foreign;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      Json json = Json::parse(line);
      if (json["index"] == 2) foreign += (json["index"] = 77, json.dump()) + "\n";
    }
    return text + foreign;
  });
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("items.jsonl: item 77 under seed 0 is not of this run"));
  EXPECT_THAT(read_text(folder / "ab/items.jsonl"), HasSubstr("\"index\":77")) << "what was refused is left as it is";
}

TEST(Ab, AFinishedRunOutlivesOneThatAnswersNothing) {
  const TemporaryFolder folder;
  ASSERT_EQ(compare(folder, routes_and({"--limit", "1"})).status, 0);
  const std::string result = read_text(folder / "ab/result.json");
  const std::string items = read_text(folder / "ab/items.jsonl");
  for (const char* how : {"--overwrite", "--ignore-eos"}) {
    const CommandResult failed =
        compare(folder, {"--limit", "1", how, "--a", "qpn8=off", "--b", "endpoint=http://127.0.0.1:1/v1", "--b",
                         "model=m", "--b", "retries=0", "--b", "timeout_s=1"});
    EXPECT_EQ(failed.status, 2) << failed.err;
    EXPECT_THAT(failed.err, HasSubstr("127.0.0.1:1"));
    EXPECT_EQ(read_text(folder / "ab/result.json"), result);
    EXPECT_EQ(read_text(folder / "ab/items.jsonl"), items);
  }
}

TEST(Ab, TwoRunsIntoOneFolderNoticeEachOther) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "ab");
  {
    const FolderLock other(folder / "ab");
    const CommandResult result = compare(folder, routes_and({"--limit", "1"}));
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr((folder / "ab").string() + ": another run is writing there"));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_EQ(compare(folder, routes_and({"--limit", "1"})).status, 0);
}

TEST(Ab, ADataSetFromAPipeIsHashedAsItWasRead) {
  const TemporaryFolder folder;
  const std::string text = R"({"question": "What is 1 + 1?", "answer": "#### 2"})"
                           "\n";
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { write_text(pipe, text); });
  const CommandResult result = run_qpn8({"ab", "--model", bundled_model(), "--dataset", pipe, "--out", folder / "ab",
                                         "--threads", "1", "--a", "qpn8=off", "--max-tokens", "4"});
  writer.join();
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Json::parse(read_text(folder / "ab/run.json"))["dataset_sha256"], sha256_hex(text));
}

TEST(Ab, AnOverflowStopsTheRunNamingArmItemAndLayer) {
  const TemporaryFolder folder;
  copy_model_with(bundled_model(), folder / "model", "model.layers.3.post_attention_layernorm.weight", 1e25F);
  const CommandResult result =
      run_qpn8({"ab", "--model", folder / "model", "--dataset", repository() / "models/wordmath_test.jsonl", "--out",
                folder / "ab", "--threads", "1", "--limit", "1", "--a", "qpn8=off"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("arm a, item 0: model.layers.3: output"));
  const CommandResult run = run_qpn8({"run", "--model", folder / "model", "--prompt", "x", "--log-level", "error"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, StartsWith("qpn8: model.layers.3: output"));
}

TEST(Ab, ACandidateWithoutAQpn8ProjectionIsAnErrorAndNotATie) {
  const TemporaryFolder folder;
  const CommandResult result = compare(folder, {"--a", "qpn8=off", "--b", "qpn8=off", "--limit", "2"});
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, HasSubstr("QPN8"));
  EXPECT_EQ(result.out, "");
}

TEST(Ab, WithoutAnythingThatTheArmsDifferInIsAnErrorThatSaysWhatToGive) {
  const TemporaryFolder folder;
  const CommandResult result = compare(folder, {"--limit", "1"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, StartsWith("qpn8: --a, --b: neither is given"));
  EXPECT_THAT(result.err, HasSubstr("--a qpn8=off --b qpn8=require"));
  EXPECT_FALSE(std::filesystem::exists(folder / "ab"));
}

TEST(Ab, ArmsThatComeToTheSameConfigurationAreSaidTo) {
  const std::string same = "both arms have the same configuration";
  for (const char* a : {"qpn8=require", "qpn8=on"}) {
    const TemporaryFolder folder;
    const CommandResult result =
        compare(folder, {"--limit", "1", "--max-tokens", "4", "--a", a, "--b", "qpn8=require"});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(same)) << a;
    EXPECT_THAT(result.out, HasSubstr(same)) << a;
    EXPECT_THAT(read_text(folder / "ab/report.md"), HasSubstr(same)) << a;
  }
  const TemporaryFolder folder;
  EXPECT_THAT(compare(folder, routes_and({"--limit", "1", "--max-tokens", "4"})).out, Not(HasSubstr(same)));
}

TEST(Ab, AContextThatEndsOutputsBeforeTheirMostTokensIsSaid) {
  const TemporaryFolder folder;
  const CommandResult result =
      compare(folder, routes_and({"--limit", "1", "--max-tokens", "5000", "--engine-arg", "max_model_len=200"}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the context of arm b, 200 tokens, ends an output of 1 of 1 items before "
                                    "--max-tokens 5000; it leaves the longest of them "));
  EXPECT_THAT(result.out, HasSubstr("the context of arm a, 200 tokens"));
}

TEST(Ab, AnItemThatTheTemplateRefusesIsNamed) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "model");
  for (const auto& entry : std::filesystem::directory_iterator(bundled_model())) {
    std::filesystem::create_symlink(entry.path(), folder / "model" / entry.path().filename());
  }
  std::filesystem::remove(folder / "model/chat_template.jinja");
  write_text(folder / "model/chat_template.jinja", "{{ raise_exception('no such talk') }}");
  const CommandResult refused =
      run_qpn8({"ab", "--model", folder / "model", "--dataset", repository() / "models/wordmath_test.jsonl", "--out",
                folder / "refused", "--start", "3", "--limit", "1", "--a", "qpn8=off"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, StartsWith("qpn8: item 3: "));
  EXPECT_THAT(refused.err, HasSubstr("no such talk"));
}

TEST(Ab, AResumedRunThatWasAnotherNamesTheFlagAndBothValues) {
  const TemporaryFolder folder;
  ASSERT_EQ(compare(folder, routes_and({"--limit", "1", "--max-tokens", "4"})).status, 0);
  std::filesystem::remove(folder / "ab/result.json");
  const CommandResult result = compare(folder, routes_and({"--limit", "1", "--max-tokens", "5", "--resume"}));
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("--resume: --max-tokens was 4 and is now 5 ("));
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

TEST(Score, TakesTheLinesThatAbWrites) {
  const CommandResult result = score(
      "{\"index\": 0, \"arm\": \"a\", \"answer\": \"so \\\\boxed{42}\", \"value\": 1, \"expected\": 42}\n"
      "{\"answer\": \"a poem\", \"expected\": null}\n"
      "{\"text\": \"7\", \"answer\": \"#### 7\", \"expected\": 9}\n");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(json_lines(result.out), ElementsAre(Json{{"value", 42}, {"expected", 42}, {"correct", true}},
                                                  Json{{"value", nullptr}, {"expected", nullptr}, {"correct", false}},
                                                  Json{{"value", 7}, {"expected", 7}, {"correct", true}}))
      << "a line with \"text\" has its right answer in \"answer\"";
}

TEST(Score, NamesTheKeyOfALineThatIsOfNeitherForm) {
  const auto refuse = [](const std::string& line, const std::string& why) {
    const CommandResult result = score(line + "\n");
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr("stdin:1: " + why));
  };
  refuse(R"({"answer": "7"})", "no \"text\" that is a text");
  refuse(R"({"text": 7, "answer": "7"})", "no \"text\" that is a text");
  refuse(R"({"answer": 7, "expected": 7})", "no \"answer\" that is a text");
  refuse(R"({"answer": "7", "expected": "seven"})", "\"expected\" has no integer");
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
