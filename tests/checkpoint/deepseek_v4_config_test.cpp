#include "checkpoint/deepseek_v4_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/presets.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

DeepseekV4Config read(const json& changes = json::object()) {
  json config = preset_config("deepseek-v4-flash").json;
  config.merge_patch(changes);
  return read_deepseek_v4(parse_model_config(config.dump(), "config.json"));
}

TEST(DeepseekV4Config, ReadsThePublishedKeys) {
  const DeepseekV4Config config = read();
  ASSERT_EQ(config.layers.size(), 43U);
  EXPECT_EQ(config.layers[1].attention, CompressedAttention::none);
  EXPECT_EQ(config.layers[2].attention, CompressedAttention::sparse);
  EXPECT_EQ(config.layers[2].ratio, 4);
  EXPECT_EQ(config.layers[3].attention, CompressedAttention::heavy);
  EXPECT_EQ(config.layers[3].ratio, 128);
  EXPECT_TRUE(config.layers[2].hash_routing);
  EXPECT_FALSE(config.layers[3].hash_routing);
  EXPECT_EQ(config.rope_dims, 64);
  EXPECT_EQ(config.main_rope.type, "default");
  EXPECT_EQ(config.main_rope.theta, 10000);
  EXPECT_EQ(config.entry_rope.type, "yarn");
  EXPECT_EQ(config.entry_rope.theta, 160000);
  EXPECT_EQ(config.entry_rope.parameters.at("attention_factor"), 1.0) << "yarn's scale has no part in it";
  EXPECT_EQ(config.shared_size, 2048);
  EXPECT_EQ(config.swiglu_limit, 10.0);
  EXPECT_EQ(config.routed_scale, 1.5);
  EXPECT_FALSE(config.fp4_experts);
}

TEST(DeepseekV4Config, ReadsTheLibrarysKeysAsTheSame) {
  json types = json::array();
  json mlp = json::array();
  const json ratios = preset_config("deepseek-v4-flash").json.at("compress_ratios");
  for (std::size_t i = 0; i < 43; ++i) {
    types.push_back(ratios[i] == 0   ? "sliding_attention"
                    : ratios[i] == 4 ? "compressed_sparse_attention"
                                     : "heavily_compressed_attention");
    mlp.push_back(i < 3 ? "hash_moe" : "moe");
  }
  const json main = {{"rope_type", "default"}, {"rope_theta", 10000}, {"partial_rotary_factor", 0.125}};
  json compress = preset_config("deepseek-v4-flash").json.at("rope_scaling");
  compress.erase("type");
  compress.update({{"rope_type", "yarn"}, {"rope_theta", 160000}, {"partial_rotary_factor", 0.125}});
  const DeepseekV4Config published = read();
  const DeepseekV4Config saved =
      read({{"layer_types", types},
            {"mlp_layer_types", mlp},
            {"compress_rates", {{"compressed_sparse_attention", 4}, {"heavily_compressed_attention", 128}}},
            {"compress_ratios", nullptr},
            {"num_hash_layers", nullptr},
            {"qk_rope_head_dim", nullptr},
            {"rope_scaling", nullptr},
            {"rope_parameters", {{"main", main}, {"compress", compress}}}});
  EXPECT_EQ(saved.rope_dims, published.rope_dims);
  EXPECT_EQ(saved.entry_rope.type, published.entry_rope.type);
  EXPECT_EQ(saved.entry_rope.theta, published.entry_rope.theta);
  EXPECT_EQ(saved.entry_rope.parameters.at("factor"), published.entry_rope.parameters.at("factor"));
  ASSERT_EQ(saved.layers.size(), published.layers.size());
  for (std::size_t i = 0; i < saved.layers.size(); ++i) {
    EXPECT_EQ(saved.layers[i].attention, published.layers[i].attention) << i;
    EXPECT_EQ(saved.layers[i].ratio, published.layers[i].ratio) << i;
    EXPECT_EQ(saved.layers[i].hash_routing, published.layers[i].hash_routing) << i;
  }
}

struct Bad {
  json changes;
  Error::Kind kind;
  std::string message;
};

TEST(DeepseekV4Config, EachBadKeyIsNamed) {
  const std::vector<Bad> all = {
      {{{"compress_ratios", {0, 4}}}, Error::bad_file, "compress_ratios"},
      {{{"compress_ratios", nullptr}}, Error::bad_file, "compress_ratios"},
      {{{"layer_types", {"sliding_attention"}}}, Error::bad_file, "layer_types has 1 entries"},
      {{{"mlp_layer_types", {"moe"}}}, Error::bad_file, "mlp_layer_types has 1 entries"},
      {{{"scoring_func", "softmax"}}, Error::unsupported, R"(scoring_func is "softmax"; known: "sqrtsoftplus")"},
      {{{"topk_method", "greedy"}}, Error::unsupported, "topk_method"},
      {{{"hidden_act", "gelu"}}, Error::unsupported, "hidden_act"},
      {{{"attention_bias", true}}, Error::unsupported, "attention_bias is true"},
      {{{"num_key_value_heads", 2}}, Error::bad_file, "num_key_value_heads"},
      {{{"o_groups", 7}}, Error::bad_file, "a divisor of the 64 attention heads"},
      {{{"num_experts_per_tok", 257}}, Error::bad_file, "num_experts_per_tok"},
      {{{"n_routed_experts", 100000}}, Error::bad_file, "n_routed_experts"},
      {{{"hc_mult", 0}}, Error::bad_file, "hc_mult"},
      {{{"hc_mult", 17}}, Error::bad_file, "hc_mult"},
      {{{"hc_sinkhorn_iters", 0}}, Error::bad_file, "hc_sinkhorn_iters"},
      {{{"qk_rope_head_dim", 63}}, Error::bad_file, "expected an even number from 2 to 128"},
      {{{"qk_rope_head_dim", 256}}, Error::bad_file, "expected an even number from 2 to 128"},
      {{{"index_topk", 0}}, Error::bad_file, "index_topk"},
      {{{"swiglu_limit", -1}}, Error::bad_file, "swiglu_limit"},
      {{{"sliding_window", "wide"}}, Error::bad_file, "sliding_window"},
      {{{"compress_rates", {{"compressed_sparse_attention", 100000}}}}, Error::bad_file, "compressed_sparse_attention"},
  };
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.changes.dump());
    test::expect_error(
        bad.kind, [&] { read(bad.changes); }, AllOf(StartsWith("config.json: "), HasSubstr(bad.message)));
  }
}

TEST(DeepseekV4Config, ARatioOrKindThatIsNotKnownListsThoseThatAre) {
  json ratios = preset_config("deepseek-v4-flash").json.at("compress_ratios");
  ratios[5] = 8;
  test::expect_error(
      Error::unsupported,
      [&] {
        read({{"compress_ratios", ratios}});
      },
      HasSubstr("compress_ratios[5] is 8; known: 0, 4, 128"));
  json types = json::array();
  for (int i = 0; i < 43; ++i) types.push_back("sliding_attention");
  types[9] = "full_attention";
  test::expect_error(
      Error::unsupported,
      [&] {
        read({{"layer_types", types}});
      },
      HasSubstr("layer_types[9] is \"full_attention\"; known: sliding_attention"));
}

TEST(DeepseekV4Config, ExpertsOfAnFp8CheckpointAreFp4UnlessItSaysOtherwise) {
  EXPECT_TRUE(read({{"expert_dtype", nullptr}}).fp4_experts);
  EXPECT_TRUE(read({{"expert_dtype", "fp4"}}).fp4_experts);
  EXPECT_FALSE(read({{"expert_dtype", nullptr}, {"quantization_config", nullptr}}).fp4_experts);
}

}  // namespace
}  // namespace qpn8
