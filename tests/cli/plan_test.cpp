#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "cli/commands.hpp"
#include "qpn8/error.hpp"
#include "support/edited_model.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PlanCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* variable : {"QPN8", "QPN8_CONTRACT_CPU_AVX2"}) unsetenv(variable);
  }
  void TearDown() override { SetUp(); }

  // What `qpn8 plan ARGS` prints; an Error passes through.
  static std::string run(std::vector<std::string> args) {
    CLI::App program("test", "qpn8");
    add_plan(program);
    args.insert(args.begin(), "plan");
    std::reverse(args.begin(), args.end());  // CLI11 takes the last first
    ::testing::internal::CaptureStdout();
    try {
      program.parse(args);
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    return ::testing::internal::GetCapturedStdout();
  }

  static std::string failure(const std::vector<std::string>& args, int status) {
    try {
      run(args);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_status(), status) << error.what();
      return error.what();
    } catch (const CLI::ParseError& error) {
      EXPECT_EQ(status, 2);
      return error.what();
    }
    return "no error";
  }

  static nlohmann::json run_json(std::vector<std::string> args) {
    args.emplace_back("--json");
    return nlohmann::json::parse(run(args));
  }

  static std::string wordmath() { return (test::repository() / "models/wordmath-11m").string(); }
};

TEST_F(PlanCommand, AdmitsEveryProjectionOfTheBundledModelOnEveryCpu) {
  for (const char* hardware : {"cpu-avx512", "cpu-avx2", "cpu-neon", "cpu-portable"}) {
    const auto plan = run_json({"--model", wordmath(), "--hardware", hardware});
    for (const auto& projection : plan["projections"]) {
      EXPECT_EQ(projection["route"], "qpn8") << projection;
    }
    EXPECT_EQ(plan["summary"]["qpn8"], 25) << "4 in each of 6 layers, and the LM head";
    EXPECT_EQ(plan["summary"]["dense"], 0);
  }
}

TEST_F(PlanCommand, WithoutHardwareItPlansForThisMachine) {
  const auto plan = run_json({"--model", wordmath()});
  EXPECT_EQ(plan["summary"]["qpn8"], 25);
  const auto forced = run_json({"--model", wordmath(), "--engine-arg", "cpu_isa=portable"});
  EXPECT_EQ(forced["hardware"], "cpu-portable");
}

TEST_F(PlanCommand, ATableForPeopleEndsWithTheCounts) {
  EXPECT_THAT(run({"--model", wordmath(), "--hardware", "cpu-avx2"}),
              AllOf(HasSubstr("model.layers.5.mlp.down_proj"), HasSubstr("lm_head"),
                    ::testing::EndsWith("qpn8: 25 of 25 projections on QPN8 (contract cpu-avx2), 0 dense\n")));
}

TEST_F(PlanCommand, APublishedModelNeedsNoWeightsAndSplitsByTp) {
  const auto one = run_json({"--like", "qwen3-0.6b", "--hardware", "cpu-avx2"});
  const auto two = run_json({"--like", "qwen3-0.6b", "--hardware", "cpu-avx2", "--tp", "2", "--pp", "2"});
  EXPECT_EQ(one["projections"].size(), two["projections"].size());
  EXPECT_EQ(one["projections"][0]["n"].get<int>(), 2 * two["projections"][0]["n"].get<int>());
  EXPECT_EQ(two["topology"]["pp"], 2);
}

TEST_F(PlanCommand, ASplitThatDoesNotFitListsThoseThatDo) {
  EXPECT_EQ(failure({"--like", "qwen3-0.6b", "--tp", "3"}, 2),
            "--tp 3: 16 attention heads cannot be split by 3; legal values: 1, 2, 4, 8, 16");
  for (const char* tp : {"1", "2", "4", "8", "16"}) {
    EXPECT_EQ(failure({"--like", "qwen3-0.6b", "--tp", tp}, 0), "no error") << tp;
  }
}

TEST_F(PlanCommand, RefusesARotationThatRunWouldRefuse) {
  const test::EditedModel model(wordmath(), {{"rope_parameters", {{"rope_type", "longrope"}}}});
  EXPECT_THAT(failure({"--model", model.path().string()}, 2), HasSubstr("rope_type \"longrope\" is not supported"));
}

/// A copy of the deepseek_v4 fixture with another config, and its tensors under the names that their publisher gives.
class RenamedModel {
 public:
  explicit RenamedModel(const nlohmann::json& config) {
    folder_.write("config.json", config.dump());
    const Checkpoint original(fixture());
    std::vector<TensorToWrite> tensors;
    for (const CheckpointTensor& tensor : original.tensors()) {
      tensors.push_back({published(tensor.name), tensor.dtype, tensor.shape, tensor.bytes});
    }
    write_safetensors(folder_ / "model.safetensors", tensors);
  }

  static std::filesystem::path fixture() { return test::data() / "tiny-deepseek-v4"; }
  static nlohmann::json config() { return nlohmann::json::parse(test::read_text(fixture() / "config.json")); }
  std::string path() const { return folder_.path().string(); }

 private:
  static std::string published(std::string name) {
    const std::vector<std::pair<std::string, std::string>> changes = {{"model.hc_head.", "hc_head_"},
                                                                      {"hc_head_hc_", "hc_head_"},
                                                                      {"model.embed_tokens.", "embed."},
                                                                      {"model.", ""},
                                                                      {"attn.norm.", "attn.kv_norm."}};
    for (const auto& [from, to] : changes) {
      if (const std::size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
    }
    return name;
  }

  test::TemporaryFolder folder_;
};

TEST_F(PlanCommand, DependsOnNoNameOfModelFolderArchitectureOrTensor) {
  const std::vector<std::string> rest = {"--tp", "4", "--pp", "2", "--hardware", "cpu-avx2", "--json"};
  const auto plan = [&](const std::string& folder) {
    std::vector<std::string> args = {"--model", folder};
    args.insert(args.end(), rest.begin(), rest.end());
    return run(args);
  };
  const std::string expected = plan(RenamedModel::fixture().string());
  EXPECT_NE(nlohmann::json::parse(expected)["summary"]["qpn8"], 0);

  nlohmann::json renamed = RenamedModel::config();
  renamed["architectures"] = {"SomethingElseForCausalLM"};
  renamed["_name_or_path"] = "somebody/something-else";
  EXPECT_EQ(plan(RenamedModel(renamed).path()), expected);

  // The decoder's own model_type chooses its code and cannot change; that of a file around it can.
  const nlohmann::json nested = {{"model_type", "something_else"}, {"text_config", renamed}};
  EXPECT_EQ(plan(RenamedModel(nested).path()), expected);
}

TEST_F(PlanCommand, FlagVariableAndEngineArgumentTurnQpn8Off) {
  const std::vector<std::string> args = {"--model", wordmath(), "--hardware", "cpu-avx2"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = args;
    all.insert(all.end(), more.begin(), more.end());
    return run_json(all)["summary"]["qpn8"].get<int>();
  };
  EXPECT_EQ(with({"--qpn8", "off"}), 0);
  EXPECT_EQ(with({"--engine-arg", "qpn8=off"}), 0);
  setenv("QPN8", "off", 1);
  EXPECT_EQ(with({}), 0);
  EXPECT_EQ(with({"--qpn8", "auto"}), 25);
  setenv("QPN8", "on", 1);
  setenv("QPN8_CONTRACT_CPU_AVX2", "off", 1);
  EXPECT_EQ(with({}), 0);
}

TEST_F(PlanCommand, NineSequencesAreMoreThanTheContractsHoldFor) {
  const auto plan =
      run_json({"--model", wordmath(), "--hardware", "cpu-avx2", "--engine-arg", "max_num_seqs=9", "--qpn8", "auto"});
  EXPECT_EQ(plan["projections"][0]["reason"], "9 sequences, the contract holds for up to 8");
}

TEST_F(PlanCommand, RequireFailsWithEveryRefusedProjection) {
  const std::string message = failure({"--model", wordmath(), "--hardware", "sm75", "--qpn8", "require"}, 3);
  EXPECT_THAT(message, AllOf(HasSubstr("25 of 25"), HasSubstr("model.layers.0.self_attn.qkv_proj"),
                             HasSubstr("model.layers.5.mlp.down_proj"), HasSubstr("no contract holds for sm75")));
  EXPECT_EQ(failure({"--model", wordmath(), "--hardware", "cpu-avx2", "--qpn8", "require"}, 0), "no error");
}

TEST_F(PlanCommand, BadArgumentsNameTheFlag) {
  EXPECT_THAT(failure({}, 2), AllOf(HasSubstr("--model"), HasSubstr("--like")));
  EXPECT_THAT(failure({"--model", wordmath(), "--like", "qwen3-0.6b"}, 2), HasSubstr("--like"));
  EXPECT_THAT(failure({"--like", "no-such-model"}, 2), HasSubstr("no-such-model"));
  EXPECT_THAT(failure({"--like", "qwen3-0.6b", "--hardware", "sm1"}, 2), ::testing::StartsWith("--hardware"));
  EXPECT_THAT(failure({"--like", "qwen3-0.6b", "--contract", "/no/such.json"}, 2), HasSubstr("/no/such.json"));
  EXPECT_THAT(failure({"--like", "qwen3-0.6b", "--qpn8", "maybe"}, 2), HasSubstr("auto"));
}

// The same checkpoint under another folder name and with other names inside is the same tensors, and gets the same plan
// byte for byte.
TEST_F(PlanCommand, AnotherPathAndAnotherArchitectureNameChangeNothing) {
  const test::EditedModel other(wordmath(), {{"architectures", {"UnheardOfForCausalLM"}}});
  const std::vector<std::string> rest = {"--hardware", "cpu-avx2", "--json"};
  EXPECT_EQ(run({"--model", wordmath(), rest[0], rest[1], rest[2]}),
            run({"--model", other.path().string(), rest[0], rest[1], rest[2]}));
}

}  // namespace
}  // namespace qpn8::cli
