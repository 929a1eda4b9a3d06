// The fixtures' golden logits and greedy tokens, computed by an independent
// implementation in FP32 on the stored weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "engine/engine.hpp"
#include "support/numbers.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

struct GoldenCase {
  std::string fixture;
  std::int64_t chunk;  ///< tokens a prefill pass; 1 is token by token
};

std::string golden_name(const testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.fixture + "_chunk_" + std::to_string(info.param.chunk);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<TokenId> token_ids(const CheckpointTensor& tensor) {
  std::vector<std::int64_t> wide(static_cast<std::size_t>(tensor.elements()));
  std::memcpy(wide.data(), tensor.bytes.data(), tensor.bytes.size());
  return {wide.begin(), wide.end()};
}

MatrixView<const float> logits_at(const std::vector<float>& logits, std::size_t position, std::size_t vocabulary) {
  return {logits.data() + position * vocabulary, 1, static_cast<std::int64_t>(vocabulary)};
}

class Golden : public testing::TestWithParam<GoldenCase> {
 protected:
  Golden() : goldens_(test::data() / GetParam().fixture / "golden.safetensors") {
    EngineOptions options;
    options.device = "cpu";
    options.threads = 2;
    options.qpn8 = "off";
    options.kv_dtype = DType::f32;
    options.prefill_chunk = GetParam().chunk;
    engine_ = std::make_unique<Engine>(test::data() / GetParam().fixture, options);
  }

  int prompts() const {
    int count = 0;
    while (goldens_.contains("prompt_" + std::to_string(count))) ++count;
    return count;
  }

  Checkpoint goldens_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(Golden, LogitsOfEveryPositionAreReproduced) {
  ASSERT_GT(prompts(), 0);
  for (int i = 0; i < prompts(); ++i) {
    const std::string number = std::to_string(i);
    const std::vector<TokenId> prompt = token_ids(goldens_.tensor("prompt_" + number));
    const std::vector<float> expected = goldens_.floats(goldens_.tensor("logits_" + number));
    const std::vector<float> logits = engine_->logits(prompt, GetParam().chunk);
    ASSERT_EQ(logits.size(), expected.size());
    ASSERT_FALSE(prompt.empty());
    const std::size_t vocabulary = expected.size() / prompt.size();
    for (std::size_t position = 0; position < prompt.size(); ++position) {
      const double error =
          test::relative_l2(logits_at(logits, position, vocabulary), logits_at(expected, position, vocabulary));
      EXPECT_LE(error, 1e-4) << "prompt " << i << ", position " << position;
    }
  }
}

TEST_P(Golden, GreedyTokensAreReproduced) {
  ASSERT_GT(prompts(), 0);
  for (int i = 0; i < prompts(); ++i) {
    const std::string number = std::to_string(i);
    GenerationRequest request;
    request.prompt = token_ids(goldens_.tensor("prompt_" + number));
    request.max_tokens = 24;
    request.ignore_eos = true;
    const std::vector<TokenId> expected = token_ids(goldens_.tensor("greedy_" + number));
    ASSERT_EQ(expected.size(), 24U);
    EXPECT_EQ(engine_->generate(request).output_ids, expected) << "prompt " << i;
  }
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> result;
  for (const char* fixture : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe", "tiny-deepseek-v4",
                              "tiny-qwen4-exp", "tiny-qwen3-next", "tiny-qwen3-5", "tiny-qwen3-5-moe"}) {
    for (const std::int64_t chunk : {512, 33, 5, 1}) result.push_back({fixture, chunk});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Golden, testing::ValuesIn(golden_cases()), golden_name);

}  // namespace
}  // namespace qpn8
