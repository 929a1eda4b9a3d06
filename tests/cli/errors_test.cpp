#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/qpn8_command.hpp"

namespace qpn8::test {
namespace {

using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

Arguments run_tiny(const Arguments& more) {
  Arguments arguments = {"run", "--model", tiny_model(), "--log-level", "error"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Every error is one line on stderr, nothing on stdout, and the exit status that its kind has.
void expect_refused(const CommandResult& result, int status, const std::string& message) {
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(message));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

struct Case {
  Arguments arguments;
  std::string message;
};

TEST(CommandLine, WhatDoesNotParseIsRefusedInOneLineThatNamesTheFlag) {
  const std::vector<Case> cases = {
      {{}, "a command is missing"},
      {{"frobnicate"}, "frobnicate: unexpected"},
      {{"run"}, "--model"},
      {{"plan", "--model", tiny_model(), "score", "x"}, "score"},
      {{"run", "--model"}, "--model"},
      {run_tiny({"--frobnicate"}), "--frobnicate: unexpected; see 'qpn8 run --help'"},
      {run_tiny({"--prompt-ids", "1", "stray"}), "stray: unexpected"},
      {run_tiny({"--prompt", "a", "--chat", "b"}), "--prompt excludes --chat"},
      {run_tiny({"--chat", "a", "--prompt-ids", "1"}), "--chat excludes --prompt-ids"},
      {run_tiny({"--prompt-ids", "1", "--system", "s"}), "--system requires --chat"},
      {run_tiny({"--prompt-ids", "1", "--threads", "1", "--threads", "2"}), "--threads"},
      {run_tiny({"--prompt-ids", "1", "--max-tokens", "x"}), "--max-tokens x: is not an integer"},
      {run_tiny({"--prompt-ids", "1", "--max-tokens", "1.5"}), "--max-tokens 1.5: is not an integer"},
      {run_tiny({"--prompt-ids", "1", "--temperature", "warm"}), "--temperature warm: is not a number"},
      {run_tiny({"--prompt-ids", "1", "--seed=-1"}), "--seed -1: is not an integer of at least 0"},
      {run_tiny({"--prompt-ids", "1", "--top-k", "99999999999"}), "--top-k 99999999999: is out of range"},
      {run_tiny({"--log-level", "loud"}), "--log-level"},
      {{"run", "--model", tiny_model(), "--log-level", "loud"}, "--log-level loud: legal values: off, error"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.arguments));
    expect_refused(run_qpn8(c.arguments), 2, c.message);
  }
}

TEST(CommandLine, EngineFlagsAndArgumentsAreCheckedBeforeAnythingLoads) {
  const std::vector<Case> cases = {
      {run_tiny({"--threads", "abc"}), R"(--threads: "abc" is not an integer from 0 to 1024)"},
      {run_tiny({"--qpn8", "maybe"}), R"(--qpn8: "maybe" is not "auto", "on", "off" or "require")"},
      {run_tiny({"--device", "tpu"}), R"(--device: "tpu" is not "auto", "cpu" or "cuda")"},
      {run_tiny({"--engine-arg", "unknown_key=1"}), "known: device, threads"},
      {run_tiny({"--engine-arg", "novalue"}), "expected KEY=VALUE"},
      {run_tiny({"--engine-arg", "kv-dtype=int8"}), R"("int8" is not "float16" or "float32")"},
      {run_tiny({"--threads", "2", "--engine-arg", "threads=3"}), "--threads 2: the engine argument threads says 3"},
      {run_tiny({"--contract", "a.json", "--engine-arg", "contract=b.json"}), "give one of the two"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.arguments));
    expect_refused(run_qpn8(c.arguments), 2, c.message);
  }
}

TEST(CommandLine, WhatTheModelCannotDoIsRefusedWithWhatItCan) {
  const std::string many_ids = [] {
    std::string ids = "1";
    for (int i = 1; i < 600; ++i) ids += ",1";
    return ids;
  }();
  const std::vector<Case> cases = {
      {run_tiny({"--prompt-ids", "1,x"}), "--prompt-ids x: is not an integer"},
      {run_tiny({"--prompt-ids", "1,,2"}), "--prompt-ids"},
      {run_tiny({"--prompt-ids", ""}), "--prompt-ids: is empty"},
      {run_tiny({"--prompt-ids", "1,512"}), "token 512 is outside the model's vocabulary of 512"},
      {run_tiny({"--prompt-ids", "-1"}), "token -1 is outside the model's vocabulary of 512"},
      {run_tiny({"--prompt-ids", many_ids}), "prompt has 600 tokens; the context is 512"},
      {run_tiny({"--prompt-ids", "1", "--engine-arg", "max_model_len=513"}), "legal values: 1 to 512"},
      {run_tiny({"--prompt-ids", "1", "--max-tokens", "0"}), "max_tokens: must be at least 1"},
      {run_tiny({"--prompt-ids", "1", "--temperature=-1"}), "temperature"},
      {run_tiny({"--prompt-ids", "1", "--top-p", "2"}), "top_p"},
      {run_tiny({"--prompt-ids", "1", "--stop", "x"}), "no tokenizer"},
      {run_tiny({"--prompt-ids", "1", "--tp", "3"}), "--tp 3: this qpn8 has no communicator"},
      {run_tiny({"--prompt-ids", "1", "--tp", "2"}), "legal value: 1"},
      {run_tiny({"--prompt-ids", "1", "--pp", "2"}), "--pp 2"},
      {run_tiny({"--prompt-ids", "1", "--contract", "/nowhere.json"}), "/nowhere.json"},
      {run_tiny({"--prompt", "text"}), "tokenizer.json: no such file"},
      {{"run", "--model", "/nowhere", "--prompt", "x"}, "/nowhere"},
      {{"run", "--model", bundled_model(), "--prompt", "", "--log-level", "error"}, "--prompt: the prompt is empty"},
      {{"run", "--model", bundled_model(), "--log-level", "error"}, "stdin: the prompt is empty"},
      {{"run", "--model", bundled_model(), "--prompt", "x", "--stop", "", "--log-level", "error"}, "must not be empty"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.arguments));
    expect_refused(run_qpn8(c.arguments), 2, c.message);
  }
}

TEST(CommandLine, WhatTheMachineLacksExitsWithStatus3) {
  expect_refused(run_qpn8(run_tiny({"--prompt-ids", "1", "--device", "cuda"})), 3, "without CUDA");
}

TEST(CommandLine, APromptWithABadVariableInTheEnvironmentNamesTheVariable) {
  Command command = qpn8_command(run_tiny({"--prompt-ids", "1"}));
  command.environment["QPN8"] = "perhaps";
  expect_refused(run_command(command), 2, "QPN8");
}

TEST(CommandLine, ANewlineInANameStaysInTheOneLine) {
  expect_refused(run_qpn8({"run", "--model", "/no\nwhere", "--prompt-ids", "1"}), 2, "where");
}

TEST(CommandLine, HelpAndVersionExitWithStatus0OnStdout) {
  for (const Arguments& arguments : {Arguments{"--help"}, Arguments{"run", "--help"}, Arguments{"--version"}}) {
    const CommandResult result = run_qpn8(arguments);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, HasSubstr("qpn8"));
    EXPECT_EQ(result.err, "");
  }
  EXPECT_THAT(run_qpn8({"run", "--help"}).out, HasSubstr("--prompt-ids"));
  EXPECT_THAT(run_qpn8({"run", "--help"}).out, HasSubstr("prefill_chunk"));
}

TEST(CommandLine, AStdoutThatCannotBeWrittenIsAnErrorAndNotACrash) {
  for (const Stdout output : {Stdout::closed, Stdout::unread}) {
    Command command = qpn8_command(run_tiny({"--prompt-ids", "1,2", "--max-tokens", "2"}));
    command.output = output;
    expect_refused(run_command(command), 2, "stdout: ");
  }
}

}  // namespace
}  // namespace qpn8::test
