#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/qpn8_command.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8::test {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

Arguments bench_tiny(const Arguments& more) {
  Arguments arguments = {"bench",     "--model", tiny_model(), "--contexts",  "4",
                         "--prefill", "8",       "--repeats",  "1",           "--rotation-mb",
                         "1",         "--rows",  "1,8",        "--log-level", "error"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void expect_refused(const Arguments& arguments, int status, const std::string& message) {
  const CommandResult result = run_qpn8(arguments);
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(message));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(BenchCommand, JsonHasWhatWasMeasuredAndNothingElseIsOnStdout) {
  const CommandResult result = run_qpn8(bench_tiny({"--json", "--threads", "2"}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["threads"], 2);
  EXPECT_GT(json["read_gb_per_s"].get<double>(), 0);
  EXPECT_EQ(json["decode"].size(), 2);
  EXPECT_EQ(json["prefill"].size(), 2);
  EXPECT_GT(json["load_s"]["qpn8"].get<double>(), 0);
  EXPECT_GT(json["peak_rss_mb"]["dense"].get<double>(), 1);
  EXPECT_EQ(json["decode"][1]["route"], "dense");
  EXPECT_GT(json["decode"][1]["bytes_per_token"].get<double>(), 4980736) << "two bytes a weight, and the keys";
}

TEST(BenchCommand, PartsAndShapesNarrowWhatIsMeasured) {
  const CommandResult decode = run_qpn8(bench_tiny({"--parts", "decode"}));
  ASSERT_EQ(decode.status, 0) << decode.err;
  EXPECT_THAT(decode.out, HasSubstr("DECODE"));
  EXPECT_THAT(decode.out, testing::Not(HasSubstr("OPERATOR")));

  const TemporaryFolder folder;
  const auto shapes = folder.write("shapes.json", R"([{"role": "mlp.down_proj", "k": 64, "n": 64}])");
  const CommandResult operators =
      run_qpn8({"bench", "--shapes", shapes.string(), "--rows", "1", "--repeats", "1", "--rotation-mb", "1", "--json"});
  ASSERT_EQ(operators.status, 0) << operators.err;
  const auto json = nlohmann::json::parse(operators.out);
  ASSERT_EQ(json["operators"].size(), 3);
  EXPECT_EQ(json["operators"][1]["role"], "mlp.down_proj");
  EXPECT_EQ(json["decode"].size(), 0);
}

// What the check sees depends on the machine; that it says what it saw, and that its status agrees, does not.
TEST(BenchCommand, TheCheckPrintsWhatItSawAndItsStatusAgrees) {
  const CommandResult result = run_qpn8(bench_tiny({"--check", "--json"}));
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["bars"].size(), 2) << "the model fits the cache: those of the operators";
  bool all = true;
  for (const auto& bar : json["bars"]) {
    EXPECT_GT(bar["seen"].get<double>(), 0);
    all = all && bar["holds"].get<bool>();
  }
  EXPECT_EQ(result.status, all ? 0 : 1);
  EXPECT_THAT(result.err, HasSubstr(all ? "" : "--check: "));
}

TEST(BenchCommand, TheCheckFailsWhereNothingRunsOnQpn8) {
  const CommandResult result = run_qpn8(bench_tiny({"--check", "--qpn8", "off"}));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("nothing runs on QPN8"));
}

TEST(BenchCommand, BadFlagsAreNamedBeforeAnythingIsMeasured) {
  expect_refused({"bench"}, 2, "expected --model DIR or --shapes FILE");
  expect_refused({"bench", "--model", tiny_model(), "--shapes", "x"}, 2, "--model excludes --shapes");
  expect_refused({"bench", "--growth-model", tiny_model()}, 2, "--growth-model requires --model");
  expect_refused({"bench", "--model", "/nowhere"}, 2, "/nowhere");
  expect_refused({"bench", "--shapes", "/nowhere.json"}, 2, "/nowhere.json");
  struct Case {
    const char* flag;
    const char* value;
    const char* message;
  };
  for (const Case& c :
       {Case{"--rows", "1,x", "--rows x: is not an integer"}, Case{"--rows", "1,", "--rows 1,: a number is missing"},
        Case{"--rows", "0", "--rows 0: expected 1 to"}, Case{"--rows", "1,1", "1 is there twice"},
        Case{"--rows", "", "--rows: 1 required"}, Case{"--contexts", "1,,2", "--contexts 1,,2: a number is missing"},
        Case{"--prefill", "0", "--prefill 0: expected 1 to"}, Case{"--repeats", "0", "--repeats 0: expected 1 to 1000"},
        Case{"--warmups", "-1", "--warmups -1: expected 0 to 1000"},
        Case{"--rotation-mb", "-1", "--rotation-mb -1: expected 0 to"},
        Case{"--parts", "decode,x", "legal values: operators, decode, prefill, load"},
        Case{"--parts", "", "--parts: 1 required"}, Case{"--threads", "x", "--threads"}}) {
    SCOPED_TRACE(std::string(c.flag) + " " + c.value);
    expect_refused({"bench", "--model", tiny_model(), std::string(c.flag) + "=" + c.value}, 2, c.message);
  }
  expect_refused({"bench", "--model", tiny_model(), "--device", "cuda"}, 3, "CUDA");
}

TEST(TuneCommand, WritesAContractThatLoadsAndAdmits) {
  const TemporaryFolder folder;
  const std::string out = (folder / "tuned.json").string();
  const CommandResult tuned = run_qpn8({"tune", "--model", tiny_model(), "--out", out, "--repeats", "1",
                                        "--rotation-mb", "1", "--name", "mine", "--json"});
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const auto measured = nlohmann::json::parse(tuned.out);
  for (const auto& shape : measured["shapes"]) EXPECT_GE(shape["trials"].size(), 6);

  const CommandResult plan =
      run_qpn8({"plan", "--model", tiny_model(), "--contract", out, "--qpn8", "require", "--json"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  int admitted = 0;
  const auto planned = nlohmann::json::parse(plan.out);
  EXPECT_EQ(planned["hardware"], measured["hardware"]);
  for (const auto& projection : planned["projections"]) {
    if (projection["contract"] == "mine" && projection["route"] == "qpn8") ++admitted;
  }
  EXPECT_GE(admitted, 16) << "4 in each of 4 layers";
  EXPECT_THAT(read_text(out), HasSubstr("Measured by qpn8 tune on " + measured["hardware"].get<std::string>()));
}

TEST(TuneCommand, BadFlagsAreNamedBeforeAnythingIsMeasured) {
  const TemporaryFolder folder;
  const Arguments tune = {"tune", "--model", tiny_model(), "--out", (folder / "x.json").string()};
  const auto with = [&](const Arguments& more) {
    Arguments arguments = tune;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  expect_refused({"tune", "--model", tiny_model()}, 2, "--out");
  expect_refused({"tune", "--out", "x.json"}, 2, "--model");
  expect_refused(with({"--name", "Not A Name"}), 2, "--name Not A Name");
  expect_refused(with({"--repeats", "0"}), 2, "--repeats 0: expected 1 to 1000");
  expect_refused(with({"--rotation-mb=-1"}), 2, "--rotation-mb -1: expected 0 to");
  expect_refused(with({"--qpn8", "off"}), 2, "nothing to tune");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.json"));
}

}  // namespace
}  // namespace qpn8::test
