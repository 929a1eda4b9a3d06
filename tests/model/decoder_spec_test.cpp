#include "model/decoder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ModelConfig fixture_with(const std::string& fixture, const json& changes) {
  ModelConfig config = load_model_config(test::data() / fixture);
  config.json.merge_patch(changes);
  return config;
}

std::vector<std::int64_t> windows(const json& changes) {
  std::vector<std::int64_t> result;
  for (const DecoderSpec::Layer& layer : windowed_layers(fixture_with("tiny-qwen3", changes))) {
    result.push_back(layer.window);
  }
  return result;
}

json sliding(json more) {
  more["use_sliding_window"] = true;
  more["sliding_window"] = 7;
  return more;
}

TEST(WindowedLayers, WithoutLayerTypesAreThoseFromMaxWindowLayersOn) {
  const json untyped = {{"layer_types", nullptr}};
  const auto from = [&](std::int64_t first) {
    json changes = sliding(untyped);
    changes["max_window_layers"] = first;
    return windows(changes);
  };
  using Windows = std::vector<std::int64_t>;
  EXPECT_EQ(from(0), (Windows{7, 7, 7, 7}));
  EXPECT_EQ(from(1), (Windows{0, 7, 7, 7}));
  EXPECT_EQ(from(3), (Windows{0, 0, 0, 7}));
  EXPECT_EQ(from(4), (Windows{0, 0, 0, 0}));
  EXPECT_EQ(from(28), (Windows{0, 0, 0, 0}));
}

TEST(WindowedLayers, LayerTypesWinOverMaxWindowLayers) {
  const json changes =
      sliding({{"max_window_layers", 0},
               {"layer_types", {"full_attention", "sliding_attention", "full_attention", "sliding_attention"}}});
  EXPECT_EQ(windows(changes), (std::vector<std::int64_t>{0, 7, 0, 7}));
}

TEST(WindowedLayers, AreNoneUnlessTheWindowIsInUse) {
  for (const json& use : {json(false), json()}) {
    const json changes = {{"use_sliding_window", use},
                          {"sliding_window", 7},
                          {"max_window_layers", 0},
                          {"layer_types", std::vector<std::string>(4, "sliding_attention")}};
    EXPECT_EQ(windows(changes), (std::vector<std::int64_t>{0, 0, 0, 0})) << use;
  }
}

TEST(WindowedLayers, WhatIsWrongIsNamed) {
  const auto expect_refused = [](const json& changes, Error::Kind kind, const char* message) {
    test::expect_error([&] { windows(changes); }, kind, HasSubstr(message));
  };
  expect_refused({{"layer_types", {"full_attention"}}}, Error::bad_file, "layer_types has 1 entries, expected one for");
  expect_refused({{"layer_types", {"full_attention", "linear_attention", "full_attention", "full_attention"}}},
                 Error::unsupported, "layer_types[1] is \"linear_attention\"; known: full_attention");
  const json untyped = {{"layer_types", nullptr}, {"max_window_layers", 0}, {"use_sliding_window", true}};
  json no_width = untyped;
  no_width["sliding_window"] = 0;
  expect_refused(no_width, Error::bad_file, "sliding_window is 0, expected an integer of at least 1");
  json negative = sliding(untyped);
  negative["max_window_layers"] = -1;
  expect_refused(negative, Error::bad_file, "max_window_layers is -1");
}

/// The layers of a six-layer tiny-qwen3-moe that have experts.
std::set<int> sparse_layers(const json& changes) {
  ModelConfig config = fixture_with("tiny-qwen3-moe", changes);
  config.layers = 6;
  std::set<int> layers;
  for (const Projection& projection : describe_projections(config, {}, nullptr)) {
    for (int layer = 0; layer < 6; ++layer) {
      if (projection.desc.name == "model.layers." + std::to_string(layer) + ".mlp.gate") layers.insert(layer);
    }
  }
  return layers;
}

TEST(Qwen3Moe, EveryDecoderSparseStepThLayerHasExperts) {
  const auto every = [](std::int64_t step) { return sparse_layers({{"decoder_sparse_step", step}}); };
  EXPECT_EQ(every(1), (std::set{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(every(2), (std::set{1, 3, 5}));
  EXPECT_EQ(every(6), (std::set{5}));
  EXPECT_EQ(every(7), std::set<int>{});
}

TEST(Qwen3Moe, MlpOnlyLayersStayDense) {
  EXPECT_EQ(sparse_layers({{"mlp_only_layers", {0, 5}}}), (std::set{1, 2, 3, 4}));
  EXPECT_EQ(sparse_layers({{"mlp_only_layers", {1, 2, 99}}, {"decoder_sparse_step", 2}}), (std::set{3, 5}));
  EXPECT_EQ(sparse_layers({{"mlp_only_layers", {0, 1, 2, 3, 4, 5}}}), std::set<int>{});
  EXPECT_EQ(sparse_layers({{"mlp_only_layers", nullptr}}).size(), 6U);
}

TEST(Qwen3Moe, WhatIsWrongIsNamed) {
  const auto expect_refused = [](const json& changes, const char* message) {
    test::expect_error([&] { sparse_layers(changes); }, Error::bad_file, HasSubstr(message));
  };
  expect_refused({{"decoder_sparse_step", 0}}, "decoder_sparse_step is 0, expected an integer of at least 1");
  expect_refused({{"mlp_only_layers", 3}}, "mlp_only_layers is 3, expected a list of layer numbers");
  expect_refused({{"mlp_only_layers", {1, "2"}}}, "mlp_only_layers is [1,\"2\"], expected a list of layer numbers");
  expect_refused({{"mlp_only_layers", {-1}}}, "mlp_only_layers is [-1], expected a list of layer numbers");
  expect_refused({{"num_experts_per_tok", 9}}, "num_experts_per_tok is 9, expected at most the 8 experts");
  expect_refused({{"num_experts_per_tok", 0}}, "num_experts_per_tok is 0, expected an integer of at least 1");
  expect_refused({{"num_experts_per_tok", nullptr}}, "num_experts_per_tok is missing");
}

}  // namespace
}  // namespace qpn8
