#include "checkpoint/tensor_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/ngram_tables.hpp"
#include "checkpoint/presets.hpp"
#include "checkpoint/synthetic.hpp"
#include "support/error_of.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using test::error_of;
using test::TemporaryFolder;

void write(const ModelConfig& config, const std::filesystem::path& folder, const SyntheticOptions& options = {}) {
  ThreadTeam team(2);
  write_synthetic_checkpoint(config, folder, options, team);
}

std::map<std::string, ListedTensor> by_name(const ModelConfig& config) {
  std::map<std::string, ListedTensor> tensors;
  for (ListedTensor& tensor : list_tensors(config)) {
    std::string name = tensor.name;
    EXPECT_TRUE(tensors.emplace(name, std::move(tensor)).second) << name;
  }
  return tensors;
}

using Shape = std::vector<std::int64_t>;

TEST(DeepseekV4Tensors, HaveThePublishedShapesAndTypes) {
  const auto tensors = by_name(reduced_config(preset_config("deepseek-v4-flash"), {.layers = 5, .experts = 6}));
  const auto expect = [&](const std::string& name, const Shape& shape, std::optional<DType> dtype) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    EXPECT_EQ(tensors.at(name).shape, shape) << name;
    EXPECT_EQ(tensors.at(name).dtype, dtype) << name;
  };
  expect("embed.weight", {129280, 4096}, std::nullopt);
  expect("layers.0.attn.wq_a.weight", {1024, 4096}, DType::f8_e4m3);
  expect("layers.0.attn.wq_a.scale", {8, 32}, DType::f8_e8m0);
  expect("layers.0.attn.wq_b.weight", {32768, 1024}, DType::f8_e4m3);
  expect("layers.0.attn.wkv.scale", {4, 32}, DType::f8_e8m0);
  expect("layers.0.attn.wo_a.weight", {8192, 4096}, DType::f8_e4m3);
  expect("layers.0.attn.wo_b.weight", {4096, 8192}, DType::f8_e4m3);
  expect("layers.0.attn.attn_sink", {64}, DType::f32);
  expect("layers.0.hc_attn_fn", {24, 16384}, DType::f32);
  expect("layers.0.ffn.gate.tid2eid", {129280, 6}, DType::i64);
  expect("layers.0.ffn.experts.5.w2.weight", {4096, 2048}, DType::f8_e4m3);
  expect("layers.2.attn.compressor.wkv.weight", {1024, 4096}, std::nullopt);
  expect("layers.2.attn.compressor.ape", {4, 1024}, DType::f32);
  expect("layers.2.attn.indexer.wq_b.scale", {64, 8}, DType::f8_e8m0);
  expect("layers.2.attn.indexer.weights_proj.weight", {64, 4096}, std::nullopt);
  expect("layers.2.attn.indexer.compressor.wgate.weight", {256, 4096}, std::nullopt);
  expect("layers.3.attn.compressor.wkv.weight", {512, 4096}, std::nullopt);
  expect("layers.3.attn.compressor.ape", {128, 512}, DType::f32);
  expect("layers.3.ffn.gate.bias", {6}, DType::f32);
  expect("layers.3.ffn.shared_experts.w1.scale", {16, 32}, DType::f8_e8m0);
  expect("hc_head_fn", {4, 16384}, DType::f32);
  expect("head.weight", {129280, 4096}, std::nullopt);
  EXPECT_FALSE(tensors.contains("layers.1.attn.compressor.wkv.weight")) << "a sliding layer compresses nothing";
  EXPECT_FALSE(tensors.contains("layers.3.attn.indexer.wq_b.weight")) << "only sparse layers choose";
  EXPECT_FALSE(tensors.contains("layers.0.ffn.gate.bias")) << "experts are chosen by token there";
}

TEST(DeepseekV4Tensors, ATokensExpertsDiffer) {
  const auto tensors = by_name(reduced_config(preset_config("deepseek-v4-flash"), {.layers = 1, .experts = 7}));
  const ListedTensor& table = tensors.at("layers.0.ffn.gate.tid2eid");
  std::set<std::int64_t> first_experts;
  for (std::int64_t token = 0; token < 50; ++token) {
    std::set<std::int64_t> experts;
    for (std::int64_t i = 0; i < 6; ++i) experts.insert(table.integer(token * 6 + i));
    EXPECT_EQ(experts.size(), 6) << token;
    EXPECT_GE(*experts.begin(), 0);
    EXPECT_LT(*experts.rbegin(), 7);
    first_experts.insert(table.integer(token * 6));
  }
  EXPECT_GT(first_experts.size(), 4);
}

TEST(Qwen4ExpTensors, AreExactlyWhatARealCheckpointHolds) {
  const auto folder = test::shared_data("fixtures/tiny-qwen4-exp");
  if (!folder) GTEST_SKIP() << "needs ../shared/fixtures, which is not here";
  const Checkpoint checkpoint(*folder);
  const auto tensors = by_name(load_model_config(*folder));
  EXPECT_EQ(tensors.size(), checkpoint.tensors().size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(error_of([&, &name = name, &tensor = tensor] { checkpoint.tensor(name, tensor.shape); }), "(no error)");
    if (tensor.role != TensorRole::integers) continue;
    const CheckpointTensor& stored = checkpoint.tensor(name);
    for (std::int64_t i = 0; i < stored.elements(); ++i) {
      std::int64_t value = 0;
      std::memcpy(&value, stored.bytes.data() + i * 8, 8);
      EXPECT_EQ(tensor.integer(i), value) << name << " " << i;
    }
  }
}

TEST(Qwen4ExpTensors, HaveThePublishedShapes) {
  // The count is that of a checkpoint which the library saved: 3 linear layers and a sparse one, a layer of tables.
  EXPECT_EQ(by_name(reduced_config(preset_config("qwen3.8-flash-next"), {.layers = 4, .experts = 10})).size(),
            278 + 4 * 6 * 3);
  const auto tensors = by_name(reduced_config(preset_config("qwen3.8-flash-next"), {.layers = 4, .experts = 10}));
  EXPECT_EQ(tensors.at("model.layers.0.linear_attn.in_proj_qkv.weight").shape, (Shape{10240, 2560}));
  EXPECT_EQ(tensors.at("model.layers.3.self_attn.q_proj.weight").shape, (Shape{24 * 512, 2560}));
  EXPECT_EQ(tensors.at("model.layers.0.attn_hyper_connection.input_mix_weight_down.weight").shape, (Shape{320, 10240}));
  EXPECT_EQ(tensors.at("model.layers.1.ple.ple_embedding.ngram_embedding.shard_127.weight").shape,
            (Shape{2500012, 160}));
  EXPECT_FALSE(tensors.contains("model.hyper_connection_mixer.block_inject_weight.weight"));
}

TEST(NgramTables, AreThePublishedOnes) {
  const NgramTables tables = ngram_tables(preset_config("qwen3.8-flash-next"), 0);
  EXPECT_THAT(tables.multipliers, testing::ElementsAre(23703573157769, 20109073645365, 8052911324071));
  ASSERT_EQ(tables.sizes.size(), 16);
  EXPECT_THAT(std::vector(tables.sizes.begin(), tables.sizes.begin() + 4),
              testing::ElementsAre(20000003, 20000023, 20000033, 20000047));
  EXPECT_EQ(tables.sizes.back(), 20000171);
  EXPECT_EQ(tables.offsets[1], 20000003);
  EXPECT_EQ(tables.offsets.back() + tables.sizes.back(), 320001446);
  EXPECT_EQ(tables.rows, 320001536);
}

TEST(NgramTables, OfASecondLayerShareNoPrimeWithTheFirst) {
  ModelConfig config = preset_config("qwen3.8-flash-next");
  config.json["ngram_vocab_size_base"] = 200;
  config.json["heads_per_ngram"] = 4;
  config.vocab_size = 512;
  const NgramTables first = ngram_tables(config, 0);
  const NgramTables second = ngram_tables(config, 1);
  EXPECT_THAT(first.sizes, testing::ElementsAre(211, 223, 227, 229, 233, 239, 241, 251));
  EXPECT_THAT(second.sizes, testing::ElementsAre(257, 263, 269, 271, 277, 281, 283, 293));
  EXPECT_THAT(first.multipliers, testing::ElementsAre(4295158889763781, 17440218147737327, 1270917961434445));
  EXPECT_THAT(second.multipliers, testing::ElementsAre(17237745666423273, 2619768721783435, 15090836525362811));
  EXPECT_EQ(first.rows, 1920);
  EXPECT_EQ(second.rows, 2304);
}

/// A preset with everything small but its structure.
ModelConfig shrunk(const char* name, const nlohmann::json& sizes) {
  nlohmann::json changed = preset_config(name).json;
  changed.update(sizes);
  return parse_model_config(changed.dump(), "config.json");
}

ModelConfig small_deepseek() {
  return shrunk("deepseek-v4-flash", {{"vocab_size", 300},
                                      {"hidden_size", 128},
                                      {"num_hidden_layers", 4},
                                      {"num_attention_heads", 4},
                                      {"head_dim", 32},
                                      {"qk_rope_head_dim", 16},
                                      {"q_lora_rank", 32},
                                      {"o_lora_rank", 32},
                                      {"o_groups", 2},
                                      {"index_n_heads", 2},
                                      {"index_head_dim", 32},
                                      {"n_routed_experts", 8},
                                      {"moe_intermediate_size", 32}});
}

TEST(SyntheticCheckpoint, FP8WeightsHaveScalesAndPlausibleValues) {
  const TemporaryFolder folder;
  write(small_deepseek(), folder / "out");
  const Checkpoint checkpoint(folder / "out");
  const CheckpointTensor& codes = checkpoint.tensor("layers.0.attn.wo_b.weight");
  const CheckpointTensor& scale = checkpoint.tensor("layers.0.attn.wo_b.scale");
  ASSERT_EQ(codes.dtype, DType::f8_e4m3);
  ASSERT_EQ(scale.dtype, DType::f8_e8m0);
  double squares = 0;
  for (const float value : checkpoint.floats(codes)) {
    ASSERT_TRUE(std::isfinite(value));
    squares += value * value;
  }
  const double deviation = std::sqrt(squares / static_cast<double>(codes.elements())) * checkpoint.floats(scale)[0];
  // A scale is a power of two, so the deviation is 1 / sqrt(inputs) up to a factor of sqrt(2) either way.
  EXPECT_NEAR(std::log2(deviation * 8), 0, 0.55) << "64 inputs";
}

TEST(SyntheticCheckpoint, IntegersAreWrittenAsTheirRuleSays) {
  const TemporaryFolder folder;
  write(small_deepseek(), folder / "out", {.shard_bytes = 100'000});
  const Checkpoint checkpoint(folder / "out");
  EXPECT_GT(checkpoint.files().size(), 1);
  const auto listed = by_name(small_deepseek());
  EXPECT_EQ(checkpoint.tensors().size(), listed.size());
  const CheckpointTensor& table = checkpoint.tensor("layers.1.ffn.gate.tid2eid");
  for (std::int64_t i = 0; i < table.elements(); ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, table.bytes.data() + i * 8, 8);
    ASSERT_EQ(value, listed.at(table.name).integer(i));
  }
}

}  // namespace
}  // namespace qpn8
