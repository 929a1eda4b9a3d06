// Results do not depend on the number of threads, from the ids to the logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "support/numbers.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

struct ThreadCase {
  std::string model;
  std::string qpn8;
  std::size_t prompt;  ///< tokens
};

class Threads : public testing::TestWithParam<ThreadCase> {
 protected:
  static Engine engine(int threads) {
    EngineOptions options;
    options.threads = threads;
    options.qpn8 = GetParam().qpn8;
    options.max_model_len = 128;
    return Engine(test::repository() / GetParam().model, options);
  }

  static std::vector<TokenId> prompt() {
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < GetParam().prompt; ++i) ids.push_back(static_cast<TokenId>((i * 97 + 11) % 300));
    return ids;
  }
};

MatrixView<const float> row(const std::vector<float>& values) {
  return {values.data(), 1, static_cast<std::int64_t>(values.size())};
}

TEST_P(Threads, LogitsOfPrefillAndDecodeAreTheSameBits) {
  struct Pass {
    std::size_t ids;
    std::int64_t chunk;
  };
  Engine one = engine(1);
  Engine two = engine(2);
  Engine three = engine(3);
  const std::vector<TokenId> ids = prompt();
  for (const auto& [count, chunk] : {Pass{ids.size(), 512}, Pass{ids.size(), 13}, Pass{12, 5}, Pass{6, 1}}) {
    const std::span<const TokenId> some = std::span(ids).first(count);
    const std::vector<float> expected = one.logits(some, chunk);
    EXPECT_TRUE(test::same_bits(row(two.logits(some, chunk)), row(expected))) << "2 threads, chunk " << chunk;
    EXPECT_TRUE(test::same_bits(row(three.logits(some, chunk)), row(expected))) << "3 threads, chunk " << chunk;
  }
}

TEST_P(Threads, SampledTokensAreTheSame) {
  GenerationRequest request;
  request.prompt = prompt();
  request.max_tokens = 8;
  request.ignore_eos = true;
  request.sampling.temperature = 1.5;
  request.sampling.seed = 7;
  const std::vector<TokenId> expected = engine(1).generate(request).output_ids;
  for (const int threads : {2, 3}) EXPECT_EQ(engine(threads).generate(request).output_ids, expected) << threads;
}

TEST_P(Threads, TheRouteIsTheOneThatWasAskedFor) {
  const Engine loaded = engine(1);
  const auto& projections = loaded.plan().projections();
  const auto packed = std::count_if(projections.begin(), projections.end(), [](const PlannedProjection& projection) {
    return projection.route == Route::qpn8;
  });
  EXPECT_EQ(packed > 0, GetParam().qpn8 == "on");
}

std::vector<ThreadCase> thread_cases() {
  std::vector<ThreadCase> cases;
  for (const char* route : {"off", "on"}) {
    // Short, as sanitizers make it slow, but large enough for every product to be shared by all threads.
    cases.push_back({"models/wordmath-11m", route, 16});
    for (const char* model : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe"}) {
      cases.push_back({std::string("tests/data/") + model, route, 70});
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<ThreadCase>& info) {
  std::string name = info.param.model.substr(info.param.model.rfind('/') + 1) + "_qpn8_" + info.param.qpn8;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Threads, testing::ValuesIn(thread_cases()), case_name);

}  // namespace
}  // namespace qpn8
