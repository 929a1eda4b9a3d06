#include "measure/model_under_test.hpp"

#include <gtest/gtest.h>

#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

// tiny-qwen3: 4 layers, hidden 256, 8 heads and 4 key heads of 32, MLP 512, vocabulary 512 with a tied head, F16.
constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kLayerWeights = 256 * 512 + 256 * 256 + 256 * 1024 + 512 * 256;
constexpr std::int64_t kHeadWeights = 256 * 512;
constexpr std::int64_t kKvBytesAToken = kLayers * 2 * 4 * 32 * 2;

ModelUnderTest tiny(const std::string& qpn8, const std::string& kv_dtype = "float16") {
  EngineOptions options;
  options.apply({{"qpn8", qpn8}, {"threads", 2}, {"kv_dtype", kv_dtype}});
  return {test::data() / "tiny-qwen3", options};
}

TEST(ModelUnderTest, ADenseStepReadsTwoBytesAWeightAndItsKeysAndValues) {
  ModelUnderTest model = tiny("off");
  constexpr std::int64_t kWeights = 2 * (kLayers * kLayerWeights + kHeadWeights);
  EXPECT_EQ(model.model().weight_bytes_per_token(), kWeights);
  EXPECT_EQ(model.model().weight_bytes(), kWeights) << "the head shares the embedding's memory";
  model.prefill(10);
  EXPECT_EQ(model.length(), 10);
  EXPECT_EQ(model.bytes_per_step(), kWeights + 11 * kKvBytesAToken);
  model.decode(3);
  EXPECT_EQ(model.length(), 13);
  EXPECT_EQ(model.bytes_per_step(), kWeights + 14 * kKvBytesAToken);
}

TEST(ModelUnderTest, KeysAndValuesOfFourBytesCostTwice) {
  ModelUnderTest model = tiny("off", "float32");
  model.prefill(10);
  EXPECT_EQ(model.bytes_per_step() - model.model().weight_bytes_per_token(), 11 * 2 * kKvBytesAToken);
}

/// Codes, FP32 scales of the channels, and a byte for 32 channels and 16 inputs.
std::int64_t packed_bytes(std::int64_t k, std::int64_t n) { return k * n + 4 * n + n / 32 * (k / 16); }

TEST(ModelUnderTest, APackedStepReadsAByteAWeightWithItsScales) {
  ModelUnderTest model = tiny("on");
  std::int64_t weights =
      kLayers * (packed_bytes(256, 512) + packed_bytes(256, 256) + packed_bytes(256, 1024) + packed_bytes(512, 256));
  const bool packed_head = model.plan().at("lm_head").route == Route::qpn8;
  weights += packed_head ? packed_bytes(256, 512) : 2 * kHeadWeights;
  EXPECT_EQ(model.model().weight_bytes_per_token(), weights);
  EXPECT_EQ(model.model().weight_bytes(), weights + (packed_head ? 2 * kHeadWeights : 0))
      << "a packed head is a copy beside the embedding";
}

TEST(ModelUnderTest, APrefillNeedsTwoOperationsAWeightAndFourAScore) {
  const ModelUnderTest model = tiny("off");
  constexpr double kScores = 1 + 2 + 3;
  EXPECT_EQ(model.model().prefill_flop(3),
            2.0 * (3 * kLayers * kLayerWeights + kHeadWeights) + 4.0 * kLayers * kScores * 8 * 32);
}

TEST(ModelUnderTest, TakesTimeAndStaysWithinItsContext) {
  ModelUnderTest model = tiny("on");
  EXPECT_EQ(model.context_length(), 512);
  EXPECT_GT(model.prefill(20), 0);
  EXPECT_GT(model.decode(2), 0);
  model.prefill(5);
  EXPECT_EQ(model.length(), 5) << "a prefill begins anew";
}

}  // namespace
}  // namespace qpn8
