#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cuda_backend.hpp"
#include "engine/engine_loader.hpp"
#include "engine/sequence_runner.hpp"
#include "kernels/cpu/argmax.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

class CudaReplay : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const CudaDevice device = find_cuda_device();
    if (!device.hardware) GTEST_SKIP() << "needs a GPU: " << device.absence;
  }
};

// 2,500 steps a fixture and route. The expected logits come from passes that are never recorded.
TEST_P(CudaReplay, RecordedStepsFollowChangedTokensAndPositionsExactly) {
  constexpr std::size_t kLength = 100;
  for (const char* route : {"off", "on"}) {
    EngineOptions options;
    options.device = "cuda";
    options.threads = 2;
    options.qpn8 = route;
    options.max_model_len = kLength;
    LoadedModel loaded = load_model(FrontEnd(test::data() / GetParam(), options), {});
    const auto vocabulary = static_cast<std::size_t>(loaded.model->vocab_size());
    SequenceRunner runner(*loaded.backend, *loaded.model, *loaded.cache, loaded.max_rows);
    std::mt19937 generator(7);
    std::uniform_int_distribution<TokenId> any(0, static_cast<TokenId>(vocabulary) - 1);
    for (int sequence = 0; sequence < 25; ++sequence) {
      std::vector<TokenId> ids(kLength);
      for (TokenId& id : ids) id = any(generator);
      std::vector<float> expected(kLength * vocabulary);
      runner.reset();
      runner.extend(ids, 1, expected);
      runner.reset();
      const bool greedy = sequence % 2 == 1;
      for (std::size_t i = 0; i < kLength; ++i) {
        const std::span<const float> row = std::span(expected).subspan(i * vocabulary, vocabulary);
        if (greedy) {
          const auto token = runner.extend_greedily(std::array{ids[i]});
          ASSERT_EQ(token, static_cast<TokenId>(*cpu::argmax(row))) << route << " " << sequence << " at " << i;
        } else {
          const std::span<const float> logits = runner.extend(std::array{ids[i]});
          ASSERT_EQ(std::memcmp(logits.data(), row.data(), row.size_bytes()), 0)
              << route << " " << sequence << " at " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CudaReplay,
                         testing::Values("tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe"));

}  // namespace
}  // namespace qpn8
