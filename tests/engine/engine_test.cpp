#include "engine/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "kernels/cpu/isa.hpp"
#include "support/expect_error.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<TokenId> kPrompt = {5, 17, 300, 2, 44, 8};

std::filesystem::path tiny_model() { return test::data() / "tiny-qwen3"; }

EngineOptions one_thread() {
  EngineOptions options;
  options.threads = 1;
  return options;
}

TEST(Engine, TheObserverSeesThePlanBeforeTheWeightsAndAllOfThem) {
  bool planned = false;
  std::vector<std::int64_t> done;
  std::int64_t total = 0;
  const LoadObserver observer = {.planned =
                                     [&](const Plan& plan) {
                                       EXPECT_TRUE(done.empty());
                                       EXPECT_FALSE(plan.projections().empty());
                                       planned = true;
                                     },
                                 .loaded =
                                     [&](std::int64_t now, std::int64_t of) {
                                       EXPECT_TRUE(planned);
                                       done.push_back(now);
                                       total = of;
                                     }};
  const Engine engine(tiny_model(), one_thread(), observer);
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), total);
  EXPECT_EQ(engine.context_length(), 512);
  EXPECT_EQ(engine.vocab_size(), 512);
  EXPECT_GT(engine.weight_bytes_per_token(), 0);
}

TEST(Engine, WhatTheObserverThrowsEndsTheLoading) {
  const LoadObserver observer = {.planned = [](const Plan& /*plan*/) { throw Error(Error::bad_argument, "planted"); },
                                 .loaded = nullptr};
  test::expect_error([&] { const Engine engine(tiny_model(), one_thread(), observer); }, Error::bad_argument,
                     HasSubstr("planted"));
}

TEST(Engine, TextNeedsATokenizerAndAChatItsTemplate) {
  const Engine engine(tiny_model(), one_thread());
  EXPECT_FALSE(engine.has_tokenizer());
  test::expect_error([&] { engine.encode_prompt("x"); }, Error::bad_file,
                     AllOf(HasSubstr("tokenizer.json"), HasSubstr("no such file")));
  test::expect_error(
      [&] {
        engine.encode_chat({{"messages", nlohmann::ordered_json::array()}});
      },
      Error::bad_file, HasSubstr("no chat template"));
}

TEST(Engine, LogitsCheckTheirArguments) {
  Engine engine(tiny_model(), one_thread());
  test::expect_error([&] { engine.logits(kPrompt, 0); }, Error::bad_argument, HasSubstr("chunk"));
  test::expect_error([&] { engine.logits({}, 1); }, Error::bad_argument, HasSubstr("empty"));
  test::expect_error([&] { engine.logits(std::vector<TokenId>{512}, 1); }, Error::bad_argument, HasSubstr("512"));
}

TEST(Engine, ADeviceThatIsNotThereIsAMissingCapability) {
  EngineOptions options = one_thread();
  options.device = "cuda";
  test::expect_error([&] { const Engine engine(tiny_model(), options); }, Error::missing_capability,
                     HasSubstr("without CUDA"));
}

TEST(Engine, MoreThanOneRankIsRefusedWithTheReason) {
  EngineOptions options = one_thread();
  for (const int tp : {2, 3}) {
    options.tp = tp;
    test::expect_error([&] { const Engine engine(tiny_model(), options); }, Error::unsupported,
                       AllOf(HasSubstr("--tp " + std::to_string(tp)), HasSubstr("no communicator"),
                             testing::EndsWith("legal value: 1")));
  }
  options.tp = 1;
  options.pp = 2;
  test::expect_error([&] { const Engine engine(tiny_model(), options); }, Error::unsupported, HasSubstr("--pp 2"));
}

TEST(Engine, EnginesOnDifferentInstructionSetsMayTakeTurns) {
  const auto alone = [](cpu::Isa isa) {
    EngineOptions options = one_thread();
    options.cpu_isa = cpu::to_string(isa);
    return Engine(tiny_model(), options).logits(kPrompt, 8);
  };
  const cpu::Isa best = cpu::available_isas().front();
  const std::vector<float> expected_best = alone(best);
  const std::vector<float> expected_portable = alone(cpu::Isa::portable);

  EngineOptions options = one_thread();
  Engine on_best(tiny_model(), options);
  options.cpu_isa = "portable";
  Engine on_portable(tiny_model(), options);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(on_best.logits(kPrompt, 8), expected_best);
    EXPECT_EQ(on_portable.logits(kPrompt, 8), expected_portable);
  }
  EXPECT_EQ(on_portable.plan().hardware().isa, "portable");
}

TEST(Engine, AContextOfTheUsersChoiceBoundsPromptAndOutput) {
  EngineOptions options = one_thread();
  options.max_model_len = 9;
  Engine engine(tiny_model(), options);
  EXPECT_EQ(engine.generate({.prompt = kPrompt, .ignore_eos = true}).output_ids.size(), 3U);
  const std::vector<TokenId> ten(10, 3);
  test::expect_error([&] { engine.generate({.prompt = ten}); }, Error::bad_argument,
                     HasSubstr("prompt has 10 tokens; the context is 9"));
}

}  // namespace
}  // namespace qpn8
