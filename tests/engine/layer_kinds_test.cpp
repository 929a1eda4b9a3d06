// Kinds of layers that no fixture has, held to what they must equal: sliding windows, dense layers among experts,
// experts that all agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "engine/engine.hpp"
#include "support/edited_model.hpp"
#include "support/numbers.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;

const std::vector<TokenId> kPrompt = {5, 17, 300, 2, 44, 8, 301, 19, 77, 120, 3, 250};

EngineOptions dense() {
  EngineOptions options;
  options.threads = 2;
  options.qpn8 = "off";
  options.kv_dtype = DType::f32;
  return options;
}

std::vector<float> logits_of(const std::filesystem::path& model, std::span<const TokenId> prompt, std::int64_t chunk) {
  return Engine(model, dense()).logits(prompt, chunk);
}

/// The logits of one position.
std::vector<float> at(const std::vector<float>& logits, std::size_t position, std::size_t positions) {
  const std::size_t vocabulary = logits.size() / positions;
  const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(position * vocabulary);
  return {begin, begin + static_cast<std::ptrdiff_t>(vocabulary)};
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  const auto row = [](const std::vector<float>& values) {
    return MatrixView<const float>(values.data(), 1, static_cast<std::int64_t>(values.size()));
  };
  return test::relative_l2<float>(row(a), row(b));
}

json windowed(std::int64_t width, std::int64_t first_layer = 0) {
  return {{"layer_types", nullptr},
          {"use_sliding_window", true},
          {"sliding_window", width},
          {"max_window_layers", first_layer}};
}

/// A fixture whose layers from `first_layer` on see `width` tokens, run in passes of `chunk`.
std::vector<float> windowed_logits(const std::string& fixture, std::int64_t width, std::int64_t chunk,
                                   std::int64_t first_layer = 0, std::span<const TokenId> prompt = kPrompt) {
  return logits_of(test::EditedModel(test::data() / fixture, windowed(width, first_layer)).path(), prompt, chunk);
}

class SlidingWindow : public testing::TestWithParam<std::string> {};

TEST_P(SlidingWindow, AsWideAsThePromptIsFullAttention) {
  Engine full(test::data() / GetParam(), dense());
  const auto equals_full = [&](std::int64_t width, std::int64_t chunk) {
    return windowed_logits(GetParam(), width, chunk) == full.logits(kPrompt, chunk);
  };
  for (const std::int64_t chunk : {512, 5, 1}) {
    EXPECT_TRUE(equals_full(12, chunk)) << chunk;
    EXPECT_FALSE(equals_full(11, chunk)) << chunk;
  }
  EXPECT_TRUE(equals_full(100000, 5));
}

TEST_P(SlidingWindow, FromALayerBeyondTheLastOnIsFullAttention) {
  const std::vector<float> full = logits_of(test::data() / GetParam(), kPrompt, 5);
  EXPECT_EQ(windowed_logits(GetParam(), 1, 5, 28), full);
  const std::vector<float> last_layers = windowed_logits(GetParam(), 1, 5, 1);
  EXPECT_NE(last_layers, full);
  EXPECT_NE(last_layers, windowed_logits(GetParam(), 1, 5, 0));
}

TEST_P(SlidingWindow, OfOneTokenSeesThatTokenAlone) {
  const std::vector<float> logits = windowed_logits(GetParam(), 1, 1);
  for (std::size_t i = 0; i < kPrompt.size(); ++i) {
    const std::vector<float> alone = windowed_logits(GetParam(), 1, 1, 0, std::span(kPrompt).subspan(i, 1));
    EXPECT_LE(difference(at(logits, i, kPrompt.size()), alone), 1e-5) << i;
  }
}

// Each layer carries a token's influence width - 1 positions on: through L layers position p depends on the tokens from
// p - L (width - 1) on, and on no other.
TEST_P(SlidingWindow, ReachesExactlyAsFarBackAsItIsWide) {
  const std::int64_t layers = load_model_config(test::data() / GetParam()).layers;
  const std::size_t last = kPrompt.size() - 1;
  for (const std::int64_t width : {1, 2, 3}) {
    const auto first = static_cast<std::int64_t>(last) - layers * (width - 1);
    Engine engine(test::EditedModel(test::data() / GetParam(), windowed(width)).path(), dense());
    for (const std::int64_t chunk : {512, 5, 1}) {
      const std::vector<float> logits = at(engine.logits(kPrompt, chunk), last, kPrompt.size());
      for (const std::int64_t changed : {first - 1, first}) {
        if (changed < 0) continue;
        std::vector<TokenId> other = kPrompt;
        other[static_cast<std::size_t>(changed)] = 9;
        const std::vector<float> seen = at(engine.logits(other, chunk), last, kPrompt.size());
        EXPECT_EQ(seen == logits, changed < first) << "width " << width << ", token " << changed << ", chunk " << chunk;
      }
    }
  }
}

std::string fixture_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SlidingWindow, testing::Values("tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe"),
                         fixture_name);

json experts(std::int64_t count, std::int64_t per_token) {
  return {{"model_type", "qwen3_moe"},
          {"num_experts", count},
          {"num_experts_per_tok", per_token},
          {"moe_intermediate_size", 512},
          {"norm_topk_prob", true}};
}

TEST(Qwen3Moe, WithDenseLayersOnlyIsQwen3) {
  const std::filesystem::path qwen3 = test::data() / "tiny-qwen3";
  json listed = experts(8, 2);
  listed["mlp_only_layers"] = {0, 1, 2, 3};
  json never = experts(8, 2);
  never["decoder_sparse_step"] = 5;
  for (const std::int64_t chunk : {512, 1}) {
    const std::vector<float> expected = logits_of(qwen3, kPrompt, chunk);
    EXPECT_EQ(logits_of(test::EditedModel(qwen3, listed).path(), kPrompt, chunk), expected);
    EXPECT_EQ(logits_of(test::EditedModel(qwen3, never).path(), kPrompt, chunk), expected);
  }
}

/// tiny-qwen3 with its dense MLP as each of `count` experts in some layers, and a router of zeros.
class AgreeingExperts {
 public:
  AgreeingExperts(std::int64_t count, const std::vector<int>& layers, const json& config)
      : model_(test::data() / "tiny-qwen3", config), source_(test::data() / "tiny-qwen3") {
    const std::vector<std::byte> zeros(static_cast<std::size_t>(count * 256) * sizeof(float));
    std::vector<TensorToWrite> written;
    for (const int layer : layers) {
      written.push_back({mlp(layer) + "gate.weight", DType::f32, {count, 256}, zeros});
    }
    for (const CheckpointTensor& tensor : source_.tensors()) {
      const auto in_layer = [&](int layer) { return tensor.name.starts_with(mlp(layer)); };
      const auto layer = std::find_if(layers.begin(), layers.end(), in_layer);
      if (layer == layers.end()) {
        written.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
        continue;
      }
      for (std::int64_t expert = 0; expert < count; ++expert) {
        const std::string rest = tensor.name.substr(mlp(*layer).size());
        written.push_back(
            {mlp(*layer) + "experts." + std::to_string(expert) + "." + rest, tensor.dtype, tensor.shape, tensor.bytes});
      }
    }
    write_safetensors(model_.path() / "model.safetensors", written);
  }

  const std::filesystem::path& path() const { return model_.path(); }

 private:
  static std::string mlp(int layer) { return "model.layers." + std::to_string(layer) + ".mlp."; }

  test::EditedModel model_;
  Checkpoint source_;
};

TEST(Qwen3Moe, ExpertsThatAgreeAreTheDenseMlpHoweverManyAToken) {
  struct Case {
    std::int64_t count, per_token;
  };
  const std::vector<float> expected = logits_of(test::data() / "tiny-qwen3", kPrompt, 5);
  for (const auto& [count, per_token] : {Case{1, 1}, Case{4, 1}, Case{4, 3}, Case{4, 4}}) {
    const AgreeingExperts model(count, {0, 1, 2, 3}, experts(count, per_token));
    EXPECT_LE(difference(logits_of(model.path(), kPrompt, 5), expected), 1e-5) << count << ", " << per_token;
  }
}

// Without the normalisation all experts' weights sum to 1 by themselves, and fewer to less.
TEST(Qwen3Moe, WeightsAreNormalisedOnlyWhereTheConfigSaysSo) {
  const std::vector<float> expected = logits_of(test::data() / "tiny-qwen3", kPrompt, 5);
  const auto plain = [](std::int64_t per_token) {
    json config = experts(4, per_token);
    config["norm_topk_prob"] = false;
    return logits_of(AgreeingExperts(4, {0, 1, 2, 3}, config).path(), kPrompt, 5);
  };
  EXPECT_LE(difference(plain(4), expected), 1e-5);
  EXPECT_GE(difference(plain(2), expected), 1e-2);
}

TEST(Qwen3Moe, DenseAndSparseLayersMix) {
  const std::vector<float> expected = logits_of(test::data() / "tiny-qwen3", kPrompt, 5);
  json listed = experts(4, 2);
  listed["mlp_only_layers"] = {0, 2};
  json stepped = experts(4, 2);
  stepped["decoder_sparse_step"] = 2;
  for (const json& config : {listed, stepped}) {
    EXPECT_LE(difference(logits_of(AgreeingExperts(4, {1, 3}, config).path(), kPrompt, 5), expected), 1e-5) << config;
  }
}

}  // namespace
}  // namespace qpn8
