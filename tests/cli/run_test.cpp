#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "cli/qpn8_command.hpp"

namespace qpn8::test {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::int64_t> golden_ids(const std::string& name) {
  const Checkpoint golden(data() / "tiny-qwen3/golden.safetensors");
  const CheckpointTensor& tensor = golden.tensor(name);
  std::vector<std::int64_t> ids(tensor.bytes.size() / sizeof(std::int64_t));
  std::memcpy(ids.data(), tensor.bytes.data(), tensor.bytes.size());
  return ids;
}

std::string joined(const std::vector<std::int64_t>& ids) {
  std::string text;
  for (const std::int64_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

/// As the reference texts were made: the question and what the model was trained to see after it.
std::string first_question() {
  std::ifstream items(repository() / "models/wordmath_test.jsonl");
  std::string line;
  std::getline(items, line);
  const std::string question = Json::parse(line)["question"];
  return question + "\nPlease reason step by step, and put your final answer within \\boxed{}.";
}

std::string first_reference_text() {
  std::ifstream file(repository() / "models/wordmath-11m/reference_greedy.json");
  return Json::parse(file)["texts"][0];
}

CommandResult run_bundled(std::vector<std::string> more, const std::string& input = "") {
  std::vector<std::string> arguments = {"run", "--model", bundled_model(), "--qpn8", "off", "--threads", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Command command = qpn8_command(std::move(arguments));
  command.input = input;
  return run_command(command);
}

TEST(Run, PromptIdsGiveTheGoldenTokensAndExactlyTheDocumentedKeys) {
  const CommandResult result =
      run_qpn8({"run", "--model", tiny_model(), "--prompt-ids", joined(golden_ids("prompt_0")), "--qpn8", "off",
                "--engine-arg", "kv_dtype=float32", "--max-tokens", "24", "--ignore-eos", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, testing::ElementsAre("prompt_ids", "output_ids", "text", "finish_reason", "ttft_ms",
                                         "decode_tokens_per_s"));
  EXPECT_EQ(json["prompt_ids"].get<std::vector<std::int64_t>>(), golden_ids("prompt_0"));
  EXPECT_EQ(json["output_ids"].get<std::vector<std::int64_t>>(), golden_ids("greedy_0"));
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["text"], "");
  EXPECT_GT(json["ttft_ms"].get<double>(), 0);
  EXPECT_GT(json["decode_tokens_per_s"].get<double>(), 0);
}

TEST(Run, WithoutATokenizerTheIdsArePrinted) {
  const CommandResult result = run_qpn8({"run", "--model", tiny_model(), "--prompt-ids", joined(golden_ids("prompt_0")),
                                         "--qpn8", "off", "--max-tokens", "1"});
  EXPECT_EQ(result.out, std::to_string(golden_ids("greedy_0").front()) + "\n");
}

TEST(Run, AChatGivesTheReferenceText) {
  const CommandResult result = run_bundled({"--chat", first_question()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, first_reference_text() + "\n");
}

TEST(Run, APromptOnStdinIsThePromptOfTheFlag) {
  const std::string prompt = "<|im_start|>user\n" + first_question() + "<|im_end|>\n<|im_start|>assistant\n";
  const auto ids = [](const CommandResult& result) { return Json::parse(result.out)["prompt_ids"]; };
  const Json by_stdin = ids(run_bundled({"--json", "--max-tokens", "1"}, prompt));
  EXPECT_EQ(by_stdin, ids(run_bundled({"--prompt", prompt, "--json", "--max-tokens", "1"})));
  EXPECT_EQ(by_stdin, ids(run_bundled({"--chat", first_question(), "--json", "--max-tokens", "1"})));
}

TEST(Run, ASystemMessageComesBeforeTheUsers) {
  const std::string both =
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  const auto ids = [](const CommandResult& result) { return Json::parse(result.out)["prompt_ids"]; };
  EXPECT_EQ(ids(run_bundled({"--chat", "Hi", "--system", "Be brief.", "--json", "--max-tokens", "1"})),
            ids(run_bundled({"--prompt", both, "--json", "--max-tokens", "1"})));
}

TEST(Run, StopTextsAndMaxTokensEndTheOutput) {
  const std::string text = first_reference_text();
  const CommandResult stopped = run_bundled({"--chat", first_question(), "--stop", "never there", "--stop", " + 10"});
  EXPECT_EQ(stopped.out, text.substr(0, text.find(" + 10")) + "\n");
  const CommandResult cut = run_bundled({"--chat", first_question(), "--max-tokens", "5", "--json"});
  EXPECT_EQ(Json::parse(cut.out)["finish_reason"], "length");
  EXPECT_EQ(Json::parse(cut.out)["output_ids"].size(), 5U);
}

TEST(Run, AnOutputThatTheContextEndsIsSaidToBe) {
  const std::vector<std::string> command = {
      "run",    "--model",      tiny_model(),   "--prompt-ids",    "1,2,3",
      "--json", "--ignore-eos", "--engine-arg", "max_model_len=8", "--max-tokens"};
  const auto run_with = [&](const std::string& max_tokens) {
    std::vector<std::string> arguments = command;
    arguments.push_back(max_tokens);
    return run_qpn8(arguments);
  };
  const CommandResult cut = run_with("6");
  ASSERT_EQ(cut.status, 0) << cut.err;
  EXPECT_EQ(Json::parse(cut.out)["output_ids"].size(), 5U);
  EXPECT_EQ(Json::parse(cut.out)["finish_reason"], "length");
  EXPECT_THAT(cut.err, HasSubstr("the context of 8 tokens does: 3 of prompt leave 5 of --max-tokens 6"));
  EXPECT_THAT(run_with("5").err, Not(HasSubstr("the context of")));
}

TEST(Run, SamplingFollowsItsSeed) {
  const auto sampled = [](const std::string& seed) {
    const std::vector<std::string> arguments = {
        "run",     "--model",      tiny_model(), "--prompt-ids", "1,2,3",   "--temperature", "50",
        "--top-k", "40",           "--top-p",    "0.9",          "--min-p", "0.001",         "--repetition-penalty",
        "1.1",     "--max-tokens", "12",         "--seed",       seed,      "--ignore-eos"};
    const CommandResult result = run_qpn8(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(sampled("1"), sampled("1"));
  EXPECT_NE(sampled("1"), sampled("2"));
}

TEST(Run, TheNumberOfThreadsAndTheChunkDoNotChangeTheTokens) {
  const auto ids = [](const std::string& threads, const std::string& chunk) {
    const CommandResult result =
        run_qpn8({"run", "--model", tiny_model(), "--prompt-ids", joined(golden_ids("prompt_0")), "--max-tokens", "12",
                  "--ignore-eos", "--threads", threads, "--engine-arg", "prefill_chunk=" + chunk});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(ids("1", "512"), ids("3", "512"));
  EXPECT_EQ(ids("1", "512"), ids("2", "7"));
}

TEST(Run, TheStartUpLineIsOnStderrUnlessTheLogLevelHidesIt) {
  const std::vector<std::string> base = {"run", "--model",      tiny_model(), "--prompt-ids", "1,2", "--qpn8",
                                         "off", "--max-tokens", "1"};
  EXPECT_THAT(run_qpn8(base).err, StartsWith("qpn8: 0 of "));
  std::vector<std::string> quiet = base;
  quiet.insert(quiet.end(), {"--log-level", "error"});
  EXPECT_EQ(run_qpn8(quiet).err, "");
}

TEST(Run, TheVariableTurnsQpn8OffAndTheFlagWinsOverIt) {
  Command command = qpn8_command({"run", "--model", bundled_model(), "--prompt", "x", "--max-tokens", "1"});
  EXPECT_THAT(run_command(command).err, testing::Not(StartsWith("qpn8: 0 of ")));
  command.environment["QPN8"] = "off";
  EXPECT_THAT(run_command(command).err, StartsWith("qpn8: 0 of "));
  command.arguments.insert(command.arguments.end(), {"--qpn8", "on"});
  EXPECT_THAT(run_command(command).err, testing::Not(StartsWith("qpn8: 0 of ")));
}

}  // namespace
}  // namespace qpn8::test
