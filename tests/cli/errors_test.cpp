#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/qpn8_command.hpp"
#include "support/model_copy.hpp"
#include "support/temporary_folder.hpp"
#include "support/tokenizers.hpp"

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
      {run_tiny({"--prompt-ids", "1,,2"}),
       "--prompt-ids 1,,2: a number is missing; expected numbers separated by commas"},
      {run_tiny({"--prompt-ids", "1,"}), "--prompt-ids 1,: a number is missing"},
      {run_tiny({"--prompt-ids", ""}), "--prompt-ids: is empty"},
      {run_tiny({"--prompt-ids", "1,512"}),
       "--prompt-ids: token 512 is outside the model's vocabulary; expected 0 to 511"},
      {run_tiny({"--prompt-ids", "-1"}), "--prompt-ids: token -1 is outside the model's vocabulary"},
      {run_tiny({"--prompt-ids", many_ids}), "--prompt-ids: 600 tokens in a context of 512; expected at most 511"},
      {run_tiny({"--prompt-ids", "1", "--engine-arg", "max_model_len=513"}), "legal values: 1 to 512"},
      {run_tiny({"--prompt-ids", "1", "--max-tokens", "0"}), "--max-tokens 0: expected at least 1"},
      {run_tiny({"--prompt-ids", "1", "--temperature=-1"}), "--temperature -1: expected"},
      {run_tiny({"--prompt-ids", "1", "--top-p", "2"}), "--top-p 2: expected"},
      {run_tiny({"--prompt-ids", "1", "--stop", "x"}), "--stop: the model has no tokenizer"},
      {run_tiny({"--prompt-ids", "1", "--tp", "3"}), "--tp 3: this qpn8 has no communicator"},
      {run_tiny({"--prompt-ids", "1", "--tp", "2"}), "legal value: 1"},
      {run_tiny({"--prompt-ids", "1", "--pp", "2"}), "--pp 2"},
      {run_tiny({"--prompt-ids", "1", "--contract", "/nowhere.json"}), "/nowhere.json"},
      {run_tiny({"--prompt", "text"}), "tokenizer.json: no such file"},
      {{"run", "--model", "/nowhere", "--prompt", "x"}, "--model: /nowhere is not a folder; expected a Hugging Face"},
      {{"plan", "--model", "/dev/null"}, "--model: /dev/null is not a folder"},
      {{"audit", "--model", "/nowhere"}, "--model: /nowhere is not a folder"},
      {{"bench", "--model", "/nowhere"}, "--model: /nowhere is not a folder"},
      {{"tune", "--model", "/nowhere", "--out", "x"}, "--model: /nowhere is not a folder"},
      {{"tokenize", "--model", "/nowhere"}, "--model: /nowhere is not a folder"},
      {{"tokenize"}, "no tokenizer is given; expected --model DIR or --tokenizer FILE"},
      {{"help", "walk"}, "walk: is not a command"},
      {{"run", "--model", bundled_model(), "--prompt", "", "--log-level", "error"}, "--prompt: the prompt is empty"},
      {{"run", "--model", bundled_model(), "--log-level", "error"}, "stdin: the prompt is empty"},
      {{"run", "--model", bundled_model(), "--prompt", "x", "--stop", "", "--log-level", "error"}, "--stop: is empty"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.arguments));
    expect_refused(run_qpn8(c.arguments), 2, c.message);
  }
}

TEST(CommandLine, AnEmptyNameIsNoName) {
  const std::vector<Case> cases = {
      {{"run", "--model", "", "--prompt", "x"}, "--model: is empty; expected a folder"},
      {{"plan", "--model", ""}, "--model: is empty; expected a folder"},
      {{"tokenize", "--model", ""}, "--model: is empty; expected a folder"},
      {{"tokenize", "--tokenizer", ""}, "--tokenizer: is empty; expected a file"},
      {{"ab", "--model", "", "--dataset", "x", "--out", "y"}, "--model: is empty; expected a folder"},
      {{"ab", "--model", tiny_model(), "--dataset", "", "--out", "y"}, "--dataset: is empty; expected a file"},
      {{"ab", "--model", tiny_model(), "--dataset", "x", "--out", ""}, "--out: is empty; expected a folder"},
      {{"synth", "--like", "qwen3-0.6b", "--out", ""}, "--out: is empty; expected a folder"},
      {{"score", ""}, "is empty; expected a JSON lines file"},
      {run_tiny({"--prompt-ids", "1", "--contract", ""}), "--contract: an array is not a file, or a list of files"},
      {run_tiny({"--prompt-ids", "1", "--engine-arg", "contract="}), R"("" is not a file, or a list of files)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.arguments));
    expect_refused(run_qpn8(c.arguments), 2, c.message);
  }
}

TEST(CommandLine, AHardwareAndEngineArgumentsThatContradictIt) {
  const auto plan = [](const Arguments& more) {
    Arguments arguments = {"plan", "--model", tiny_model()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_qpn8(arguments);
  };
  expect_refused(plan({"--hardware", "cpu-avx2", "--engine-arg", "cpu_isa=portable"}), 2,
                 "--hardware cpu-avx2: the engine argument cpu_isa says portable; give one of the two");
  expect_refused(plan({"--hardware", "sm70", "--engine-arg", "cpu_isa=avx2"}), 2, "--hardware sm70: ");
  expect_refused(plan({"--hardware", "sm70", "--device", "cpu"}), 2, "--hardware sm70: device says cpu");
  EXPECT_EQ(plan({"--hardware", "cpu-avx2", "--engine-arg", "cpu_isa=avx2"}).status, 0);
  EXPECT_EQ(plan({"--hardware", "cpu-avx2", "--device", "cpu"}).status, 0);
}

/// The bundled model with weights that no loader takes: whatever is said before their error cost no loading.
class BrokenWeights : public ::testing::Test {
 protected:
  void SetUp() override { link_model_with_broken_weights(bundled_model(), model()); }

  std::string model() const { return folder_ / "model"; }

  void expect_each_refused(const Arguments& base, const std::vector<Case>& cases) const {
    for (const Case& c : cases) {
      SCOPED_TRACE(testing::PrintToString(c.arguments));
      Arguments arguments = base;
      arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
      expect_refused(run_qpn8(arguments), 2, c.message);
    }
  }

  TemporaryFolder folder_;
};

TEST_F(BrokenWeights, RunFindsABadArgumentBeforeThem) {
  std::string long_prompt;
  for (int i = 0; i < 3000; ++i) long_prompt += "word ";
  expect_each_refused({"run", "--model", model()},
                      {{{"--prompt", "x"}, "model.safetensors"},
                       {{"--prompt", "x", "--max-tokens", "0"}, "--max-tokens 0"},
                       {{"--prompt", "x", "--stop", ""}, "--stop: is empty"},
                       {{"--prompt", "x", "--temperature=-1"}, "--temperature -1"},
                       {{"--prompt", "x", "--contract", "/nowhere.json"}, "/nowhere.json"},
                       {{"--prompt", "x", "--tp", "2"}, "--tp 2"},
                       {{"--prompt", "x", "--engine-arg", "max_model_len=99999"}, "max_model_len: 99999"},
                       {{"--prompt", long_prompt}, "--prompt: "},
                       {{"--chat", long_prompt}, "--chat: "},
                       {{"--prompt-ids", "1,,2"}, "--prompt-ids 1,,2"},
                       {{"--prompt-ids", "1,1024"}, "--prompt-ids: token 1024"}});
}

TEST_F(BrokenWeights, RunRendersTheChatBeforeThem) {
  std::filesystem::remove(folder_ / "model/chat_template.jinja");
  write_text(folder_ / "model/chat_template.jinja", "{{ raise_exception('roles must alternate') }}");
  expect_each_refused({"run", "--model", model()}, {{{"--chat", "x"}, "roles must alternate"}});
  write_text(folder_ / "model/chat_template.jinja", "{# nothing #}");
  expect_each_refused({"run", "--model", model()}, {{{"--chat", "x"}, "the chat template renders nothing"}});
}

TEST_F(BrokenWeights, AbFindsABadArgumentBeforeThem) {
  folder_.write("file", "");
  std::filesystem::create_directory(folder_ / "unfinished");
  folder_.write("unfinished/items.jsonl", "{}\n");
  const std::string dataset = folder_.write("long.jsonl", R"({"question": ")" + std::string(20'000, 'x') +
                                                              R"(", "answer": "#### 1"})"
                                                              "\n");
  const std::string problems = repository() / "models/wordmath_test.jsonl";
  const auto to = [&](const char* name) { return (folder_ / name).string(); };
  expect_each_refused(
      {"ab", "--model", model(), "--log-level", "error", "--b", "qpn8=require"},
      {{{"--dataset", problems, "--out", to("out")}, "model.safetensors"},
       {{"--dataset", problems, "--out", to("out"), "--a", "quantum=1"}, "quantum"},
       {{"--dataset", problems, "--out", to("out"), "--a", "endpoint=http://h/v1"}, "no model"},
       {{"--dataset", problems, "--out", to("out"), "--a", "endpoint=nowhere", "--a", "model=m"}, "endpoint=nowhere"},
       {{"--dataset", problems, "--out", to("out"), "--a", "max_model_len=2000"}, "max_model_len"},
       {{"--dataset", problems, "--out", to("out"), "--max-tokens", "0"}, "--max-tokens 0"},
       {{"--dataset", problems, "--out", to("out"), "--top-p", "2"}, "--top-p 2"},
       {{"--dataset", problems, "--out", to("out"), "--margin", "101"}, "--margin 101"},
       {{"--dataset", problems, "--out", to("out"), "--seeds", "1,"}, "--seeds 1,: a number is missing"},
       {{"--dataset", problems, "--out", to("out"), "--seeds", "4,4"}, "--seeds 4,4: 4 is there twice"},
       {{"--dataset", problems, "--out", to("out"), "--seeds", ""}, "--seeds: is empty"},
       {{"--dataset", problems, "--out", to("out"), "--start", "512"}, "--start 512"},
       {{"--dataset", problems, "--out", to("file")}, to("file")},
       {{"--dataset", problems, "--out", to("unfinished")}, "unfinished run"},
       {{"--dataset", dataset, "--out", to("out")}, "item 0: "}});
}

TEST(CommandLine, WhatTheMachineLacksExitsWithStatus3) {
  expect_refused(run_qpn8(run_tiny({"--prompt-ids", "1", "--device", "cuda"})), 3, "does without a GPU");
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
  EXPECT_THAT(run_qpn8({"run", "--help"}).out, HasSubstr("Usage: qpn8 run "));
  EXPECT_THAT(run_qpn8({"run", "--help"}).out, HasSubstr("--prompt-ids"));
  EXPECT_EQ(run_qpn8({"help"}).out, run_qpn8({"--help"}).out);
  EXPECT_EQ(run_qpn8({"help", "run"}).out, run_qpn8({"run", "--help"}).out);
  EXPECT_THAT(run_qpn8({"run", "--help"}).out, HasSubstr("prefill_chunk"));
  EXPECT_THAT(run_qpn8({"run", "--help"}).out, HasSubstr("generation_config.json"));
}

TEST(CommandLine, AStdinThatCannotBeReadIsAnErrorAndNotAnEnd) {
  const std::string tokenizer = small_tokenizer("llama");
  for (const Arguments& arguments : {Arguments{"tokenize", "--tokenizer", tokenizer}, Arguments{"score", "-"},
                                     Arguments{"run", "--model", bundled_model(), "--log-level", "error"}}) {
    Command command = qpn8_command(arguments);
    command.input_path = "/";
    expect_refused(run_command(command), 2, "stdin: Is a directory");
  }
  expect_refused(run_qpn8({"score", "/"}), 2, "/: Is a directory");
  expect_refused(run_qpn8({"score", "/nowhere"}), 2, "/nowhere: No such file");
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
