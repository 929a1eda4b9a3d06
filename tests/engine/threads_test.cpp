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

  /// Long enough for the products of large passes and for several blocks of attention.
  static std::vector<TokenId> prompt() {
    std::vector<TokenId> ids;
    for (int i = 0; i < 70; ++i) ids.push_back((i * 97 + 11) % 300);
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
  for (const auto& [count, chunk] : {Pass{70, 512}, Pass{70, 32}, Pass{24, 5}, Pass{12, 1}}) {
    const std::span<const TokenId> some = std::span(ids).first(count);
    const std::vector<float> expected = one.logits(some, chunk);
    EXPECT_TRUE(test::same_bits(row(two.logits(some, chunk)), row(expected))) << "2 threads, chunk " << chunk;
    EXPECT_TRUE(test::same_bits(row(three.logits(some, chunk)), row(expected))) << "3 threads, chunk " << chunk;
  }
}

TEST_P(Threads, SampledTokensAreTheSame) {
  GenerationRequest request;
  request.prompt = prompt();
  request.max_tokens = 16;
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
  for (const char* model : {"tests/data/tiny-llama", "tests/data/tiny-qwen2", "tests/data/tiny-qwen3",
                            "tests/data/tiny-qwen3-moe", "models/wordmath-11m"}) {
    for (const char* route : {"off", "on"}) cases.push_back({model, route});
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
