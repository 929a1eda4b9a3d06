// The forms in which hybrid decoders are published, each as the fixture's own, and what must be refused of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors_writer.hpp"
#include "engine/engine.hpp"
#include "support/edited_model.hpp"
#include "support/expect_error.hpp"
#include "support/numbers.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::filesystem::path hybrid_fixture() { return test::data() / "tiny-qwen4-exp"; }

std::vector<TokenId> hybrid_prompt() {
  std::vector<TokenId> prompt;
  for (TokenId i = 0; i < 60; ++i) prompt.push_back(i % 13 == 9 ? 2 : (7 + 31 * i) % 320);  // the boundary among them
  return prompt;
}

EngineOptions hybrid_options(const char* route) {
  EngineOptions options;
  options.threads = 2;
  options.qpn8 = route;
  options.kv_dtype = DType::f32;
  return options;
}

std::vector<float> hybrid_logits(const std::filesystem::path& folder, std::int64_t chunk = 64) {
  return Engine(folder, hybrid_options("off")).logits(hybrid_prompt(), chunk);
}

/// The fixture with its tensors in memory, to be renamed, stacked or broken.
class RewrittenHybrid {
 public:
  struct Stored {
    DType dtype = DType::f16;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };

  RewrittenHybrid() {
    const Checkpoint checkpoint(hybrid_fixture());
    for (const CheckpointTensor& tensor : checkpoint.tensors()) {
      tensors[tensor.name] = {tensor.dtype, tensor.shape, {tensor.bytes.begin(), tensor.bytes.end()}};
    }
  }

  /// `first` and those after it, in order, become one tensor under the new name.
  void stack(const std::string& name, const std::vector<std::string>& parts, const std::vector<std::int64_t>& shape) {
    Stored whole{tensors.at(parts.front()).dtype, shape, {}};
    for (const std::string& part : parts) {
      const std::vector<std::byte>& bytes = tensors.at(part).bytes;
      whole.bytes.insert(whole.bytes.end(), bytes.begin(), bytes.end());
      tensors.erase(part);
    }
    tensors[name] = std::move(whole);
  }

  const std::filesystem::path& write() {
    std::vector<TensorToWrite> written;
    for (const auto& [name, tensor] : tensors) written.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    write_safetensors(folder_ / "model.safetensors", written);
    std::filesystem::copy_file(hybrid_fixture() / "config.json", folder_ / "config.json");
    return folder_.path();
  }

  std::map<std::string, Stored> tensors;

 private:
  test::TemporaryFolder folder_;
};

std::string layer_name(int layer, const std::string& rest) {
  return "model.layers." + std::to_string(layer) + "." + rest;
}

void pack_experts(RewrittenHybrid& model, int experts) {
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<std::string> gate_up;
    std::vector<std::string> down;
    for (int expert = 0; expert < experts; ++expert) {
      const std::string one = layer_name(layer, "mlp.experts." + std::to_string(expert) + ".");
      gate_up.insert(gate_up.end(), {one + "gate_proj.weight", one + "up_proj.weight"});
      down.push_back(one + "down_proj.weight");
    }
    model.stack(layer_name(layer, "mlp.experts.gate_up_proj"), gate_up, {experts, 128, 128});
    model.stack(layer_name(layer, "mlp.experts.down_proj"), down, {experts, 128, 64});
  }
}

TEST(HybridForms, ExpertsMayBeStackedInOneTensor) {
  RewrittenHybrid model;
  pack_experts(model, 8);
  EXPECT_EQ(hybrid_logits(model.write()), hybrid_logits(hybrid_fixture()));
}

TEST(HybridForms, TheDecoderMayLieInAMultimodalCheckpoint) {
  RewrittenHybrid model;
  pack_experts(model, 8);
  std::map<std::string, RewrittenHybrid::Stored> nested;
  for (auto& [name, tensor] : model.tensors) {
    const bool head = name == "lm_head.weight";
    nested[head ? name : "model.language_model." + name.substr(6)] = std::move(tensor);
  }
  nested["mtp.layers.0.norm.weight"] = nested.at("lm_head.weight");
  nested["model.visual.patch_embed.weight"] = nested.at("lm_head.weight");
  model.tensors = std::move(nested);
  EXPECT_EQ(hybrid_logits(model.write()), hybrid_logits(hybrid_fixture()));
}

TEST(HybridForms, ATableMayBeWholeOrInPartsOfWhichTheLastIsShorter) {
  const std::string table = "ple.ple_embedding.ngram_embedding.";
  RewrittenHybrid whole;
  for (const int layer : {1, 2}) {
    std::vector<std::string> parts;
    for (int part = 0; part < 4; ++part) {
      parts.push_back(layer_name(layer, table + "shard_" + std::to_string(part) + ".weight"));
    }
    const std::int64_t rows = 4 * whole.tensors.at(parts.front()).shape[0];
    whole.stack(layer_name(layer, table + "weight"), parts, {rows, 8});
  }
  RewrittenHybrid uneven;
  for (const int layer : {1, 2}) {
    const RewrittenHybrid::Stored all = whole.tensors.at(layer_name(layer, table + "weight"));
    constexpr std::int64_t kRows = 190;  // eleven parts or thirteen: shard_10 follows shard_9, not shard_1
    for (std::int64_t part = 0; part < 4; ++part) {
      uneven.tensors.erase(layer_name(layer, table + "shard_" + std::to_string(part) + ".weight"));
    }
    for (std::int64_t part = 0; part * kRows < all.shape[0]; ++part) {
      const std::int64_t rows = std::min(kRows, all.shape[0] - part * kRows);
      const auto begin = all.bytes.begin() + static_cast<std::ptrdiff_t>(part * kRows * 16);
      uneven.tensors[layer_name(layer, table + "shard_" + std::to_string(part) + ".weight")] = {
          DType::f16, {rows, 8}, {begin, begin + static_cast<std::ptrdiff_t>(rows * 16)}};
    }
  }
  const std::vector<float> expected = hybrid_logits(hybrid_fixture());
  EXPECT_EQ(hybrid_logits(whole.write()), expected);
  EXPECT_EQ(hybrid_logits(uneven.write()), expected);
}

/// One thing that is wrong, and the text that the message must have.
struct HybridFault {
  std::string name;
  std::function<void(RewrittenHybrid&)> plant;
  std::vector<std::string> texts;
};

class HybridFaults : public testing::TestWithParam<HybridFault> {};

TEST_P(HybridFaults, IsRefusedByName) {
  RewrittenHybrid model;
  GetParam().plant(model);
  const std::filesystem::path& folder = model.write();
  for (const std::string& text : GetParam().texts) {
    test::expect_error(
        Error::bad_file, [&] { Engine(folder, hybrid_options("off")); }, text);
  }
}

std::vector<HybridFault> hybrid_faults() {
  const std::string table = layer_name(1, "ple.ple_embedding.");
  return {
      {"AnotherHash",
       [=](RewrittenHybrid& model) { model.tensors.at(table + "layer_multipliers").bytes[0] ^= std::byte{2}; },
       {table + "layer_multipliers", "follows from config.json"}},
      {"TooFewExperts",
       [](RewrittenHybrid& model) {
         pack_experts(model, 7);
         for (auto tensor = model.tensors.begin(); tensor != model.tensors.end();) {
           tensor =
               tensor->first.find("experts.7.") != std::string::npos ? model.tensors.erase(tensor) : std::next(tensor);
         }
       },
       {"mlp.experts.gate_up_proj", "[8, 128, 128]"}},
      {"NoTable",
       [=](RewrittenHybrid& model) {
         for (int part = 0; part < 4; ++part) {
           model.tensors.erase(table + "ngram_embedding.shard_" + std::to_string(part) + ".weight");
         }
       },
       {"ngram_embedding.shard_0.weight"}},
      {"AShortTable",
       [=](RewrittenHybrid& model) {
         for (int part = 2; part < 4; ++part) {
           model.tensors.erase(table + "ngram_embedding.shard_" + std::to_string(part) + ".weight");
         }
       },
       {"ngram_embedding.shard_0.weight", "rows together"}},
      {"APartOfAnotherType",
       [=](RewrittenHybrid& model) { model.tensors.at(table + "ngram_embedding.shard_1.weight").dtype = DType::bf16; },
       {"shard_1.weight", "does not go with"}},
      {"ANormOfAnotherSize",
       [](RewrittenHybrid& model) {
         RewrittenHybrid::Stored& norm = model.tensors.at(layer_name(0, "attn_hyper_connection.hc_norm.weight"));
         norm.shape = {256};
         norm.bytes.resize(512);
       },
       {"attn_hyper_connection.hc_norm.weight", "[512]"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Kinds, HybridFaults, testing::ValuesIn(hybrid_faults()),
                         [](const auto& fault) { return fault.param.name; });

TEST(HybridForms, ConfigsThatTheDecoderDoesNotHaveAreRefused) {
  struct BadConfig {
    json changes;
    const char* text;
  };
  for (const BadConfig& bad : std::vector<BadConfig>{
           {{{"attention_bias", true}}, "attention_bias is true; known: false"},
           {{{"output_gate_type", "tanh"}}, R"(output_gate_type is "tanh"; known: "silu", "sigmoid")"},
           {{{"indexer_kv_heads", 2}}, "indexer_kv_heads is 2; known: 1"},
           {{{"indexer_budget", 18}}, "expected a multiple of indexer_compress_ratio 4"},
           {{{"indexer_head_dim", 8}}, "indexer_head_dim is 8"},
           {{{"indexer_budget", nullptr}}, "indexer_budget"},
           {{{"ple_layer_ids", {0}}}, "ple_layer_ids names 0"},
           {{{"ple_layer_ids", {4}}}, "ple_layer_ids names 4, expected linear attention layers"},
           {{{"ple_layer_ids", "2"}}, "ple_layer_ids"},
           {{{"ple_embed_dim", 63}}, "expected a multiple of the 8 n-gram heads"},
           {{{"eos_token_id", nullptr}}, "eos_token_id"},
           {{{"linear_num_value_heads", 10}}, "expected a multiple of the 4 key heads"},
           {{{"num_experts_per_tok", 9}}, "expected at most the 8 experts"},
           {{{"num_experts", 1000000}}, "num_experts is 1000000"},
           {{{"hc_count", 1000}}, "hc_count is 1000"},
           {{{"layer_types", {"linear_attention"}}}, "layer_types has 1 entries"},
           {{{"layer_types", {"linear_attention", "linear_attention", "linear_attention", "mamba"}}}, R"("mamba")"},
       }) {
    const test::EditedModel model(hybrid_fixture(), bad.changes);
    try {
      Engine(model.path(), hybrid_options("off"));
      ADD_FAILURE() << bad.changes;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.text)) << bad.changes;
      EXPECT_THAT(error.what(), HasSubstr("config.json"));
    }
  }
}

TEST(Hybrid, ASecondSequenceInThePlaceOfTheFirstStartsAnew) {
  Engine engine(hybrid_fixture(), hybrid_options("off"));
  const std::vector<float> first = engine.logits(hybrid_prompt(), 7);
  EXPECT_EQ(engine.logits(hybrid_prompt(), 7), first);
}

TEST(Hybrid, ServesTheAdmittedRolesOnQpn8AndStaysNearTheDenseRoute) {
  Engine packed(hybrid_fixture(), hybrid_options("auto"));
  std::map<std::string, int> roles;
  for (const PlannedProjection& projection : packed.plan().projections()) {
    if (projection.route == Route::qpn8) ++roles[projection.tensor.role];
  }
  EXPECT_EQ(roles["linear_attn.in_proj_qkvz"], 3);
  EXPECT_EQ(roles["linear_attn.out_proj"], 3);
  EXPECT_EQ(roles["self_attn.qkv_proj"], 1);
  EXPECT_EQ(roles["self_attn.o_proj"], 1);
  EXPECT_EQ(roles["hyper_connection.up"], 9);
  EXPECT_EQ(roles["linear_attn.in_proj_ba"], 0);
  const std::vector<float> expected = hybrid_logits(hybrid_fixture());
  const auto view = [](const std::vector<float>& values) {
    return MatrixView<const float>(values.data(), 1, static_cast<std::int64_t>(values.size()));
  };
  // Random weights make near ties of the experts' and the indexer's choices, which eight bits then turn.
  const double difference = test::relative_l2(view(packed.logits(hybrid_prompt(), 64)), view(expected));
  EXPECT_GT(difference, 1e-4);
  EXPECT_LT(difference, 0.4);
}

}  // namespace
}  // namespace qpn8
