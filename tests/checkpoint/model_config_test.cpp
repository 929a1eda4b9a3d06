#include "checkpoint/model_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "qpn8/error.hpp"
#include "support/error_of.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;
using test::error_of;
using testing::ElementsAre;

json minimal() {
  return {{"model_type", "llama"},   {"vocab_size", 100},        {"hidden_size", 64},
          {"num_hidden_layers", 2},  {"num_attention_heads", 4}, {"max_position_embeddings", 128},
          {"intermediate_size", 160}};
}

ModelConfig parse(const json& config) { return parse_model_config(config.dump(), "config.json"); }

/// The message about the minimal config with one key changed.
std::string message_with(const char* key, const json& value) {
  json config = minimal();
  config[key] = value;
  return error_of([&] { parse(config); });
}

TEST(ModelConfig, HasDefaultsForWhatMayBeAbsentOrNull) {
  json nulls = minimal();
  for (const char* key : {"num_key_value_heads", "head_dim", "rope_scaling", "rope_parameters", "eos_token_id",
                          "bos_token_id", "text_config", "rms_norm_eps", "architectures"}) {
    nulls[key] = nullptr;
  }
  for (const json& object : {minimal(), nulls}) {
    const ModelConfig config = parse(object);
    EXPECT_EQ(config.model_type, "llama");
    EXPECT_EQ(config.kv_heads, 4);
    EXPECT_EQ(config.head_dim, 16);
    EXPECT_EQ(config.rms_norm_eps, 1e-6);
    EXPECT_EQ(config.hidden_act, "silu");
    EXPECT_FALSE(config.tie_word_embeddings);
    EXPECT_EQ(config.rope.type, "default");
    EXPECT_EQ(config.rope.theta, 10000.0);
    EXPECT_EQ(config.rope.partial_rotary_factor, 1.0);
    EXPECT_TRUE(config.rope.parameters.empty());
    EXPECT_TRUE(config.eos_tokens.empty());
    EXPECT_EQ(config.bos_token, std::nullopt);
  }
}

TEST(ModelConfig, ReadsTheFixtures) {
  const ModelConfig llama = load_model_config(test::data() / "tiny-llama");
  EXPECT_EQ(llama.model_type, "llama");
  EXPECT_THAT(llama.architectures, ElementsAre("LlamaForCausalLM"));
  EXPECT_EQ(llama.rope.type, "llama3");
  EXPECT_EQ(llama.rope.theta, 500000.0);
  EXPECT_EQ(llama.rope.parameters.at("factor"), 8.0);
  EXPECT_EQ(llama.rope.parameters.size(), 4);
  EXPECT_THAT(llama.eos_tokens, ElementsAre(2));
  EXPECT_EQ(llama.bos_token, 1);
  const ModelConfig qwen3 = load_model_config(test::data() / "tiny-qwen3");
  EXPECT_EQ(qwen3.heads * qwen3.head_dim, 256);
  EXPECT_TRUE(qwen3.tie_word_embeddings);
  EXPECT_EQ(load_model_config(test::data() / "tiny-qwen2").head_dim, 32);
  EXPECT_EQ(load_model_config(test::data() / "tiny-qwen3-moe").integer("num_local_experts", 1), 8);
}

TEST(ModelConfig, ReadsTheSharedFixtures) {
  const auto deepseek = test::shared_data("fixtures/tiny-deepseek-v4");
  const auto qwen4 = test::shared_data("fixtures/tiny-qwen4-exp");
  if (!deepseek || !qwen4) GTEST_SKIP() << "needs ../shared/fixtures, which is not here";
  const ModelConfig nested = load_model_config(*deepseek);
  EXPECT_EQ(nested.rope.type, "nested");
  EXPECT_EQ(nested.rope.parameters.at("compress").at("rope_type"), "yarn");
  EXPECT_EQ(nested.intermediate_size, 0);
  EXPECT_EQ(load_model_config(*qwen4).rope.partial_rotary_factor, 0.25);
}

TEST(ModelConfig, BothFormsOfRopeMeanTheSame) {
  json current = minimal();
  current["rope_parameters"] = {
      {"rope_type", "yarn"}, {"rope_theta", 5e5}, {"factor", 4.0}, {"partial_rotary_factor", 0.5}};
  json older = minimal();
  older["rope_theta"] = 500000;
  older["partial_rotary_factor"] = 0.5;
  older["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
  json older_with_new_key = older;
  older_with_new_key["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
  for (const json& object : {current, older, older_with_new_key}) {
    const RopeConfig rope = parse(object).rope;
    EXPECT_EQ(rope.type, "yarn") << object;
    EXPECT_EQ(rope.theta, 5e5) << object;
    EXPECT_EQ(rope.partial_rotary_factor, 0.5) << object;
    EXPECT_EQ(rope.parameters, json({{"factor", 4.0}})) << object;
  }
}

TEST(ModelConfig, TheCurrentFormOfRopeFallsBackToTheTopLevelTheta) {
  json config = minimal();
  config["rope_theta"] = 1e6;
  config["rope_parameters"] = {{"rope_type", "default"}};
  EXPECT_EQ(parse(config).rope.theta, 1e6);
}

TEST(ModelConfig, BothFormsOfRopeInOneFileMustSayTheSame) {
  json both = minimal();
  both["rope_theta"] = 500000;
  both["partial_rotary_factor"] = 0.5;
  both["rope_scaling"] = {{"type", "linear"}, {"factor", 2}, {"unset", nullptr}};
  both["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 5e5}, {"partial_rotary_factor", 0.5}};
  EXPECT_EQ(parse(both).rope.type, "linear");
  for (const json& nothing : {json(), json::object()}) {
    json one = both;
    one["rope_scaling"] = nothing;
    EXPECT_EQ(parse(one).rope.type, "linear");
  }
  const auto message = [&](const json& patch) {
    json changed = both;
    changed.merge_patch(patch);
    return error_of([&] { parse(changed); });
  };
  EXPECT_EQ(message({{"rope_theta", 1e4}}),
            "config.json: rope_theta is 10000.0, rope_parameters.rope_theta is 500000.0, expected the same in both");
  EXPECT_EQ(message({{"partial_rotary_factor", 1}}),
            "config.json: partial_rotary_factor is 1, rope_parameters.partial_rotary_factor is 0.5, expected the same "
            "in both");
  EXPECT_EQ(message({{"rope_scaling", {{"type", "yarn"}}}}),
            "config.json: rope_scaling.rope_type is \"yarn\", rope_parameters.rope_type is \"linear\", expected the "
            "same in both");
  EXPECT_EQ(message({{"rope_scaling", {{"factor", 4}}}}),
            "config.json: rope_scaling.factor is 4, rope_parameters.factor is 2.0, expected the same in both");
  EXPECT_EQ(message({{"rope_parameters", {{"factor", nullptr}}}}),
            "config.json: rope_scaling.factor is 2, rope_parameters.factor is null, expected the same in both");
  EXPECT_EQ(message({{"rope_parameters", {{"rope_type", nullptr}}}}),
            "config.json: rope_scaling.rope_type is \"linear\", rope_parameters.rope_type is \"default\", expected the "
            "same in both");
}

TEST(ModelConfig, KnowsTheOneQuantisationOfWeightsThatIsSupported) {
  EXPECT_FALSE(parse(minimal()).fp8_weights);
  json config = minimal();
  config["quantization_config"] = nullptr;
  EXPECT_FALSE(parse(config).fp8_weights);
  const json fp8 = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  config["quantization_config"] = fp8;
  EXPECT_TRUE(parse(config).fp8_weights);
  json all = fp8;
  all.update({{"fmt", "e4m3"}, {"activation_scheme", "dynamic"}, {"scale_fmt", "ue8m0"}});
  config["quantization_config"] = all;
  EXPECT_TRUE(parse(config).fp8_weights);
}

TEST(ModelConfig, AnotherQuantisationIsNamed) {
  const auto refuse = [](const json& quantization) {
    std::optional<Error::Kind> kind;
    json config = minimal();
    config["quantization_config"] = quantization;
    const std::string message = error_of([&] { parse(config); }, &kind);
    const bool malformed = message.find("expected") != std::string::npos;
    EXPECT_EQ(kind, malformed ? Error::bad_file : Error::unsupported);
    return message;
  };
  EXPECT_EQ(refuse({{"quant_method", "awq"}, {"bits", 4}}),
            "config.json: quantization_config.quant_method is \"awq\", supported is \"fp8\"");
  EXPECT_EQ(refuse({{"quant_method", "fp8"}, {"weight_block_size", {64, 128}}}),
            "config.json: quantization_config.weight_block_size is [64,128], supported is [128,128]");
  EXPECT_EQ(refuse({{"quant_method", "fp8"}}),
            "config.json: quantization_config.weight_block_size is null, supported is [128,128]");
  EXPECT_EQ(refuse({{"quant_method", "fp8"}, {"fmt", "e5m2"}, {"weight_block_size", {128, 128}}}),
            "config.json: quantization_config.fmt is \"e5m2\", supported is \"e4m3\"");
  EXPECT_EQ(refuse({{"bits", 8}}), "config.json: quantization_config.quant_method is missing, expected \"fp8\"");
  EXPECT_EQ(refuse("fp8"), "config.json: quantization_config is \"fp8\", expected an object");
}

TEST(ModelConfig, TextConfigIsTheDecoderAndTheFileAroundItFillsIn) {
  json inner = minimal();
  inner["model_type"] = "qwen_text";
  const json outer = {
      {"model_type", "qwen_vl"}, {"architectures", {"QwenVL"}}, {"tie_word_embeddings", true}, {"eos_token_id", {3, 4}},
      {"hidden_size", 1},        {"text_config", inner}};
  const ModelConfig config = parse(outer);
  EXPECT_EQ(config.model_type, "qwen_text");
  EXPECT_THAT(config.architectures, ElementsAre("QwenVL"));
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_THAT(config.eos_tokens, ElementsAre(3, 4));
  EXPECT_FALSE(config.json.contains("text_config"));
}

TEST(ModelConfig, EachBadKeyIsNamedWithWhatWouldBeRight) {
  const std::string text(300, 'x');
  const std::vector<std::tuple<const char*, json, std::string>> cases = {
      {"hidden_size", "abc", "hidden_size is \"abc\", expected an integer of at least 1"},
      {"hidden_size", 0, "hidden_size is 0, expected an integer of at least 1"},
      {"hidden_size", -4, "hidden_size is -4, expected an integer of at least 1"},
      {"hidden_size", 64.0, "hidden_size is 64.0, expected an integer of at least 1"},
      {"hidden_size", nullptr, "hidden_size is missing, expected an integer of at least 1"},
      {"hidden_size", 1LL << 40, "hidden_size is 1099511627776, expected at most 1048576"},
      {"hidden_size", UINT64_MAX, "hidden_size is 18446744073709551615, expected at most 1048576"},
      {"hidden_size", text, "hidden_size is \"" + text.substr(0, 80) + "...\", expected an integer of at least 1"},
      {"hidden_size", 66,
       "head_dim is missing, expected an integer, as hidden_size 66 is not a multiple of num_attention_heads 4"},
      {"vocab_size", 1 << 25, "vocab_size is 33554432, expected at most 16777216"},
      {"intermediate_size", -1, "intermediate_size is -1, expected an integer of at least 0"},
      {"num_hidden_layers", true, "num_hidden_layers is true, expected an integer of at least 1"},
      {"num_hidden_layers", 5000, "num_hidden_layers is 5000, expected at most 4096"},
      {"num_attention_heads", json::array(), "num_attention_heads is an array, expected an integer of at least 1"},
      {"num_key_value_heads", 5, "num_key_value_heads is 5, expected at most num_attention_heads, 4"},
      {"num_key_value_heads", 0, "num_key_value_heads is 0, expected an integer of at least 1"},
      {"head_dim", 0, "head_dim is 0, expected an integer of at least 1"},
      {"max_position_embeddings", 1e30, "max_position_embeddings is 1e+30, expected an integer of at least 1"},
      {"model_type", 3, "model_type is 3, expected a string"},
      {"model_type", nullptr, "model_type is missing, expected a string"},
      {"architectures", "Llama", "architectures is \"Llama\", expected an array"},
      {"architectures", json::array({1}), "architectures[0] is 1, expected a string"},
      {"rms_norm_eps", 0, "rms_norm_eps is 0, expected a number above 0 and at most 1"},
      {"rms_norm_eps", -1e-6, "rms_norm_eps is -1e-06, expected a number above 0 and at most 1"},
      {"rms_norm_eps", "1e-6", "rms_norm_eps is \"1e-6\", expected a number"},
      {"hidden_act", json::array(), "hidden_act is an array, expected a string"},
      {"tie_word_embeddings", "yes", "tie_word_embeddings is \"yes\", expected true or false"},
      {"tie_word_embeddings", 1, "tie_word_embeddings is 1, expected true or false"},
      {"eos_token_id", -1, "eos_token_id is -1, expected an integer of at least 0"},
      {"eos_token_id", {1, "2"}, "eos_token_id[1] is \"2\", expected an integer of at least 0"},
      {"bos_token_id", "a", "bos_token_id is \"a\", expected an integer of at least 0"},
      {"rope_theta", 0, "rope_theta is 0, expected a number above 0 and at most 1000000000000000"},
      {"rope_scaling", "yarn", "rope_scaling is \"yarn\", expected an object"},
      {"rope_scaling", {{"factor", 2}}, "rope_scaling.rope_type is missing, expected the name of a rotary embedding"},
      {"rope_scaling", {{"type", 1}}, "rope_scaling.type is 1, expected a string"},
      {"rope_parameters", {{"rope_theta", "x"}}, "rope_parameters.rope_theta is \"x\", expected a number"},
      {"partial_rotary_factor", 1.5, "partial_rotary_factor is 1.5, expected a number above 0 and at most 1"},
      {"text_config", 1, "text_config is 1, expected an object"},
  };
  for (const auto& [key, value, message] : cases) EXPECT_EQ(message_with(key, value), "config.json: " + message);
}

TEST(ModelConfig, HeadsTimesHeadDimIsBounded) {
  json config = minimal();
  config["num_attention_heads"] = 16384;
  config["head_dim"] = 16384;
  EXPECT_EQ(error_of([&] { parse(config); }),
            "config.json: num_attention_heads is 16384, expected at most 256 of head_dim 16384");
}

TEST(ModelConfig, ATextThatIsNoConfigIsRefused) {
  EXPECT_EQ(error_of([] { parse_model_config("[1]", "config.json"); }), "config.json: is an array, expected an object");
  EXPECT_EQ(error_of([] { parse_model_config("{\n \"a\": NaN}", "config.json"); }),
            "config.json:2:7: not valid JSON: invalid literal");
  const test::TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { load_model_config(folder.path()); }),
            (folder / "config.json").string() + ": No such file or directory");
}

TEST(ModelConfig, AccessorsAreStrictAndKnowTheFile) {
  json object = minimal();
  object["num_experts"] = 8;
  object["norm"] = "x";
  object["none"] = nullptr;
  const ModelConfig config = parse(object);
  EXPECT_EQ(config.integer("num_experts", 1), 8);
  EXPECT_EQ(config.integer_or("none", 3, 1), 3);
  EXPECT_TRUE(config.boolean_or("absent", true));
  EXPECT_EQ(error_of([&] { config.integer("absent", 1); }),
            "config.json: absent is missing, expected an integer of at least 1");
  EXPECT_EQ(error_of([&] { config.integer("num_experts", 9); }),
            "config.json: num_experts is 8, expected an integer of at least 9");
  EXPECT_EQ(error_of([&] { config.integer_or("norm", 1, 1); }),
            "config.json: norm is \"x\", expected an integer of at least 1");
  EXPECT_EQ(error_of([&] { config.boolean_or("norm", true); }), "config.json: norm is \"x\", expected true or false");
}

GenerationConfig generation(const std::string& text) { return parse_generation_config(text, "g.json"); }

TEST(GenerationConfig, ReadsWhatIsThereAndLeavesTheRestEmpty) {
  const GenerationConfig all = generation(
      R"({"eos_token_id": [1, 2], "temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0,
          "repetition_penalty": 1.05, "do_sample": true, "transformers_version": "4.51.0"})");
  EXPECT_THAT(all.eos_tokens, ElementsAre(1, 2));
  EXPECT_EQ(all.temperature, 0.6);
  EXPECT_EQ(all.top_p, 0.95);
  EXPECT_EQ(all.top_k, 20);
  EXPECT_EQ(all.min_p, 0);
  EXPECT_EQ(all.repetition_penalty, 1.05);
  EXPECT_EQ(all.do_sample, true);
  EXPECT_THAT(generation(R"({"eos_token_id": 7})").eos_tokens, ElementsAre(7));
  const GenerationConfig none = generation(R"({"eos_token_id": null, "temperature": null, "top_k": null})");
  EXPECT_TRUE(none.eos_tokens.empty());
  EXPECT_EQ(none.temperature, std::nullopt);
  EXPECT_EQ(none.top_k, std::nullopt);
}

TEST(GenerationConfig, AnAbsentFileIsEmptyAndAMalformedOneAnError) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(load_generation_config(folder.path()).eos_tokens.empty());
  folder.write("generation_config.json", "{");
  EXPECT_EQ(error_of([&] { load_generation_config(folder.path()); }),
            (folder / "generation_config.json").string() +
                ":1:1: not valid JSON: unexpected end of input; expected string literal");
}

TEST(GenerationConfig, ALinkToNowhereIsAnErrorThatNamesIt) {
  const test::TemporaryFolder folder;
  std::filesystem::create_symlink("gone.json", folder / "generation_config.json");
  EXPECT_THAT(error_of([&] { load_generation_config(folder.path()); }),
              testing::StartsWith((folder / "generation_config.json").string() + ": "));
}

TEST(GenerationConfig, EachBadKeyIsNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"temperature": -1})", "g.json: temperature is -1, expected a number of at least 0 and at most 1000000"},
      {R"({"temperature": "hot"})", "g.json: temperature is \"hot\", expected a number"},
      {R"({"top_p": 2})", "g.json: top_p is 2, expected a number of at least 0 and at most 1"},
      {R"({"min_p": -0.5})", "g.json: min_p is -0.5, expected a number of at least 0 and at most 1"},
      {R"({"top_k": 1.5})", "g.json: top_k is 1.5, expected an integer of at least 0"},
      {R"({"repetition_penalty": 0})",
       "g.json: repetition_penalty is 0, expected a number above 0 and at most 1000000"},
      {R"({"do_sample": 1})", "g.json: do_sample is 1, expected true or false"},
      {R"({"eos_token_id": [[1]]})", "g.json: eos_token_id[0] is an array, expected an integer of at least 0"},
      {"[]", "g.json: is an array, expected an object"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of([&t = text] { generation(t); }), message);
}

}  // namespace
}  // namespace qpn8
