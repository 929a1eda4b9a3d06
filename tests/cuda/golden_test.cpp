// The fixtures' golden logits and greedy tokens on a GPU, on both routes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda_backend.hpp"
#include "checkpoint/checkpoint.hpp"
#include "engine/engine.hpp"
#include "support/numbers.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

struct GoldenCase {
  std::string fixture;
  std::int64_t chunk;
};

std::string name_of(const testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.fixture + "_chunk_" + std::to_string(info.param.chunk);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<TokenId> token_ids(const CheckpointTensor& tensor) {
  std::vector<std::int64_t> wide(static_cast<std::size_t>(tensor.elements()));
  std::memcpy(wide.data(), tensor.bytes.data(), tensor.bytes.size());
  return {wide.begin(), wide.end()};
}

double error_of_row(const std::vector<float>& values, const std::vector<float>& expected, std::size_t row,
                    std::int64_t vocabulary) {
  const std::size_t first = row * static_cast<std::size_t>(vocabulary);
  return test::relative_l2(MatrixView<const float>(values.data() + first, 1, vocabulary),
                           MatrixView<const float>(expected.data() + first, 1, vocabulary));
}

class CudaGolden : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    const CudaDevice device = find_cuda_device();
    if (!device.hardware) GTEST_SKIP() << "needs a GPU: " << device.absence;
    goldens_ = std::make_unique<Checkpoint>(test::data() / GetParam().fixture / "golden.safetensors");
    engine_ = engine("cuda", "off");
  }

  static std::unique_ptr<Engine> engine(const char* device, const char* qpn8) {
    EngineOptions options;
    options.device = device;
    options.threads = 2;
    options.qpn8 = qpn8;
    options.prefill_chunk = GetParam().chunk;
    return std::make_unique<Engine>(test::data() / GetParam().fixture, options);
  }

  std::vector<std::vector<TokenId>> all(const std::string& kind) const {
    std::vector<std::vector<TokenId>> found;
    while (goldens_->contains(kind + std::to_string(found.size()))) {
      found.push_back(token_ids(goldens_->tensor(kind + std::to_string(found.size()))));
    }
    return found;
  }

  std::unique_ptr<Checkpoint> goldens_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(CudaGolden, LogitsOfEveryPositionAreReproduced) {
  const std::vector<std::vector<TokenId>> prompts = all("prompt_");
  ASSERT_FALSE(prompts.empty());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<float> expected = goldens_->floats(goldens_->tensor("logits_" + std::to_string(i)));
    const std::vector<float> logits = engine_->logits(prompts[i], GetParam().chunk);
    ASSERT_EQ(logits.size(), expected.size());
    for (std::size_t row = 0; row < prompts[i].size(); ++row) {
      EXPECT_LE(error_of_row(logits, expected, row, engine_->vocab_size()), 3e-3) << "prompt " << i << ", row " << row;
    }
  }
}

TEST_P(CudaGolden, GreedyTokensAreReproduced) {
  const std::vector<std::vector<TokenId>> prompts = all("prompt_");
  const std::vector<std::vector<TokenId>> greedy = all("greedy_");
  ASSERT_EQ(prompts.size(), greedy.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<TokenId> found =
        engine_->generate({.prompt = prompts[i], .max_tokens = 24, .ignore_eos = true}).output_ids;
    const auto differ = std::mismatch(found.begin(), found.end(), greedy[i].begin(), greedy[i].end());
    if (differ.first == found.end()) continue;
    // A near tie may fall the other way: the CPU's logits before the first difference say whether it is one.
    std::vector<TokenId> sequence = prompts[i];
    sequence.insert(sequence.end(), found.begin(), differ.first);
    const std::vector<float> logits = engine("cpu", "off")->logits(sequence, 512);
    const float* last = logits.data() + (sequence.size() - 1) * static_cast<std::size_t>(engine_->vocab_size());
    float largest = 0.0F;
    for (std::int64_t t = 0; t < engine_->vocab_size(); ++t) largest = std::max(largest, std::fabs(last[t]));
    EXPECT_LE(last[*differ.second] - last[*differ.first], 3e-3F * largest)
        << "prompt " << i << ", token " << differ.first - found.begin();
  }
}

TEST_P(CudaGolden, TheQpn8RouteIsThatOfTheCpu) {
  const auto on_cpu = engine("cpu", "on");
  const auto on_gpu = engine("cuda", "on");
  EXPECT_GT(on_gpu->plan().count(Route::qpn8), 0U);
  EXPECT_EQ(on_gpu->plan().count(Route::qpn8), on_cpu->plan().count(Route::qpn8));
  for (const std::vector<TokenId>& prompt : all("prompt_")) {
    const std::vector<float> expected = on_cpu->logits(prompt, GetParam().chunk);
    const std::vector<float> logits = on_gpu->logits(prompt, GetParam().chunk);
    for (std::size_t row = 0; row < prompt.size(); ++row) {
      EXPECT_LE(error_of_row(logits, expected, row, on_gpu->vocab_size()), 3e-3) << "row " << row;
    }
  }
}

std::vector<GoldenCase> cases() {
  std::vector<GoldenCase> result;
  for (const char* fixture : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe"}) {
    for (const std::int64_t chunk : {512, 5, 1}) result.push_back({fixture, chunk});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CudaGolden, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace qpn8
