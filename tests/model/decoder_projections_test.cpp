#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/model_config.hpp"
#include "model/architecture.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

std::map<std::string, TensorDesc> described(const std::string& fixture, const Topology& topology = {}) {
  const std::filesystem::path folder = test::data() / fixture;
  const Checkpoint checkpoint(folder);
  std::map<std::string, TensorDesc> result;
  for (const Projection& projection : describe_projections(load_model_config(folder), topology, &checkpoint)) {
    result[projection.desc.name] = projection.desc.tensor;
  }
  return result;
}

TEST(DecoderProjections, AttentionAndMlpAreFusedWithTheConfigsShapes) {
  const auto projections = described("tiny-qwen3");
  ASSERT_EQ(projections.size(), 4U * 4U + 1U);
  const TensorDesc& qkv = projections.at("model.layers.0.self_attn.qkv_proj");
  EXPECT_EQ(qkv.role, "self_attn.qkv_proj");
  EXPECT_EQ(qkv.k, 256);
  EXPECT_EQ(qkv.n, (8 + 2 * 4) * 32);
  EXPECT_EQ(qkv.type, WeightType::f16);
  EXPECT_EQ(projections.at("model.layers.3.mlp.gate_up_proj").n, 2 * 512);
  EXPECT_EQ(projections.at("model.layers.3.mlp.down_proj").k, 512);
  EXPECT_EQ(projections.at("lm_head").n, 512);
}

TEST(DecoderProjections, TypesAreTheCheckpoints) {
  EXPECT_EQ(described("tiny-llama").at("model.layers.1.self_attn.o_proj").type, WeightType::bf16);
}

TEST(DecoderProjections, EveryExpertAndTheRouterAreListed) {
  const auto projections = described("tiny-qwen3-moe");
  EXPECT_EQ(projections.at("model.layers.1.mlp.gate").role, "mlp.router");
  EXPECT_EQ(projections.at("model.layers.1.mlp.experts.7.gate_up_proj").n, 2 * 64);
  EXPECT_EQ(projections.at("model.layers.1.mlp.experts.7.down_proj").k, 64);
}

TEST(DecoderProjections, ARankHoldsItsShare) {
  const auto projections = described("tiny-qwen3", {.tp = 8});
  const TensorDesc& qkv = projections.at("model.layers.0.self_attn.qkv_proj");
  EXPECT_EQ(qkv.layer_tp, 8);
  EXPECT_EQ(qkv.n, 32 + 2 * 32) << "one query head; a KV head of which there are only four is held twice";
  EXPECT_EQ(projections.at("model.layers.0.mlp.down_proj").k, 512 / 8);
  EXPECT_EQ(projections.at("lm_head").n, 512 / 8);
}

TEST(DecoderProjections, ASplitThatDoesNotDivideListsTheLegalOnes) {
  try {
    described("tiny-qwen3", {.tp = 3});
    ADD_FAILURE() << "--tp 3 was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--tp 3: 8 attention heads cannot be split by 3; legal values: 1, 2, 4, 8");
  }
}

/// The values of --tp up to 64 that a config accepts; each refusal must list exactly these.
std::vector<int> accepted_tp(const ModelConfig& config) {
  std::vector<int> accepted;
  std::set<std::string> lists;
  for (int tp = 1; tp <= 64; ++tp) {
    try {
      describe_projections(config, {.tp = tp}, nullptr);
      accepted.push_back(tp);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.kind(), Error::bad_argument);
      EXPECT_THAT(message, testing::StartsWith("--tp " + std::to_string(tp) + ": "));
      lists.insert(message.substr(message.find("legal values: ")));
    }
  }
  std::string expected = "legal values: ";
  for (const int tp : accepted) expected += (tp == 1 ? "" : ", ") + std::to_string(tp);
  EXPECT_THAT(lists, testing::ElementsAre(expected));
  return accepted;
}

TEST(DecoderProjections, LegalSplitsAreThoseThatEveryDimensionAllows) {
  using testing::ElementsAre;
  ModelConfig config = load_model_config(test::data() / "tiny-qwen3");
  EXPECT_THAT(accepted_tp(config), ElementsAre(1, 2, 4, 8));
  config.intermediate_size = 516;
  EXPECT_THAT(accepted_tp(config), ElementsAre(1, 2, 4));
  config.vocab_size = 510;
  EXPECT_THAT(accepted_tp(config), ElementsAre(1, 2));
  config.vocab_size = 511;
  EXPECT_THAT(accepted_tp(config), ElementsAre(1));
}

TEST(DecoderProjections, FewerKeyValueHeadsThanRanksAreHeldEquallyOftenOrRefused) {
  ModelConfig config = load_model_config(test::data() / "tiny-qwen3");
  config.heads = 12;
  config.kv_heads = 6;
  config.intermediate_size = 480;
  config.vocab_size = 480;
  EXPECT_THAT(accepted_tp(config), testing::ElementsAre(1, 2, 3, 6, 12)) << "not 4, which would cut a KV head";
}

TEST(DecoderProjections, OnlyTheMlpsThatAModelHasBoundItsSplits) {
  ModelConfig config = load_model_config(test::data() / "tiny-qwen3-moe");
  config.intermediate_size = 0;
  EXPECT_THAT(accepted_tp(config), testing::ElementsAre(1, 2, 4)) << "no layer has a dense MLP";
  config.json["moe_intermediate_size"] = 62;
  EXPECT_THAT(accepted_tp(config), testing::ElementsAre(1, 2));
}

TEST(DecoderProjections, AnMlpWithoutAWidthBlamesTheConfig) {
  ModelConfig config = load_model_config(test::data() / "tiny-qwen3");
  config.intermediate_size = 0;
  test::expect_error(
      Error::bad_file, [&] { describe_projections(config, {}, nullptr); },
      testing::EndsWith("config.json: intermediate_size is missing or 0, expected an integer of at least 1"));
}

TEST(DecoderProjections, ARotationThatTheModelCannotDoIsRefusedWithoutWeightsToo) {
  ModelConfig config = load_model_config(test::data() / "tiny-qwen3");
  config.rope.type = "longrope";
  test::expect_error(
      Error::unsupported, [&] { describe_projections(config, {}, nullptr); },
      testing::HasSubstr("rope_type \"longrope\" is not supported"));
}

TEST(DecoderProjections, AShapeThatDisagreesWithTheConfigNamesTheTensor) {
  const std::filesystem::path folder = test::data() / "tiny-qwen3";
  const Checkpoint checkpoint(folder);
  ModelConfig config = load_model_config(folder);
  config.intermediate_size = 1024;
  try {
    describe_projections(config, {}, &checkpoint);
    ADD_FAILURE() << "a wrong intermediate_size was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("model.layers.0.mlp.gate_proj.weight"));
    EXPECT_THAT(error.what(), testing::HasSubstr("1024"));
  }
}

TEST(DecoderProjections, AnActivationThatTheMlpLacksIsRefused) {
  ModelConfig config = load_model_config(test::data() / "tiny-qwen3");
  config.hidden_act = "gelu";
  try {
    describe_projections(config, {}, nullptr);
    ADD_FAILURE() << "gelu was computed as silu";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("hidden_act is \"gelu\"; known: \"silu\""));
  }
}

TEST(DecoderProjections, MoreStagesThanLayersAreRefused) {
  EXPECT_THROW(described("tiny-qwen3", {.pp = 5}), Error);
  EXPECT_NO_THROW(described("tiny-qwen3", {.pp = 4}));
}

TEST(DecoderProjections, AnAbsurdNumberOfExpertsIsRefusedBeforeTheyAreListed) {
  ModelConfig config = load_model_config(test::data() / "tiny-qwen3-moe");
  config.json.erase("num_experts");
  config.json["num_local_experts"] = 1000000000;
  EXPECT_THROW(describe_projections(config, {}, nullptr), Error);
}

TEST(DecoderProjections, AnUnknownArchitectureIsNamed) {
  ModelConfig config;
  config.file = "config.json";
  config.model_type = "mamba";
  try {
    find_architecture(config);
    ADD_FAILURE() << "mamba was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::unsupported);
    EXPECT_STREQ(
        error.what(),
        "config.json: model_type \"mamba\" is not supported; known: deepseek_v4, llama, qwen2, qwen3, qwen3_moe, "
        "qwen3_next, qwen3_5_text, qwen3_5_moe_text, qwen4_exp_text");
  }
}

}  // namespace
}  // namespace qpn8
