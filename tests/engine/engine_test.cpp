#include "engine/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "kernels/cpu/isa.hpp"
#include "support/expect_error.hpp"
#include "support/model_copy.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<TokenId> kShortPrompt = {5, 17, 300, 2, 44, 8};

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
  test::expect_error(
      Error::bad_argument, [&] { const Engine engine(tiny_model(), one_thread(), observer); }, HasSubstr("planted"));
}

TEST(Engine, TextNeedsATokenizerAndAChatItsTemplate) {
  const Engine engine(tiny_model(), one_thread());
  EXPECT_FALSE(engine.has_tokenizer());
  test::expect_error(
      Error::bad_file, [&] { engine.encode_prompt("x"); },
      AllOf(HasSubstr("tokenizer.json"), HasSubstr("no such file")));
  test::expect_error(
      Error::bad_file,
      [&] {
        engine.encode_chat({{"messages", nlohmann::ordered_json::array()}});
      },
      HasSubstr("no chat template"));
}

TEST(Engine, LogitsCheckTheirArguments) {
  Engine engine(tiny_model(), one_thread());
  test::expect_error(
      Error::bad_argument, [&] { engine.logits(kShortPrompt, 0); }, HasSubstr("chunk"));
  test::expect_error(
      Error::bad_argument, [&] { engine.logits({}, 1); }, HasSubstr("empty"));
  test::expect_error(
      Error::bad_argument, [&] { engine.logits(std::vector<TokenId>{512}, 1); }, HasSubstr("512"));
}

TEST(Engine, AnOverflowInAWeightStopsTheOutputNamingTheLayer) {
  const test::TemporaryFolder folder;
  test::copy_model_with(tiny_model(), folder / "model", "model.layers.1.post_attention_layernorm.weight", 1e25F);
  EngineOptions options = one_thread();
  for (const std::int64_t chunk : {512, 4}) {
    options.prefill_chunk = chunk;
    Engine engine(folder / "model", options);
    test::expect_error(
        Error::check_failed, [&] { engine.generate({.prompt = kShortPrompt}); },
        AllOf(StartsWith("model.layers.1: output"), HasSubstr("not finite")));
  }
}

TEST(FrontEnd, ReadsNoWeights) {
  const test::TemporaryFolder folder;
  test::link_model_with_broken_weights(tiny_model(), folder / "model");
  FrontEnd front_end(folder / "model", one_thread());
  EXPECT_EQ(front_end.context_length(), 512);
  EXPECT_EQ(front_end.limits().vocabulary, 512);
  EXPECT_FALSE(front_end.has_tokenizer());
  test::expect_error(
      Error::bad_file, [&] { const Engine engine(std::move(front_end)); }, HasSubstr("model.safetensors"));
}

TEST(FrontEnd, FindsWhatTheOptionsGetWrong) {
  const test::TemporaryFolder folder;
  test::link_model_with_broken_weights(tiny_model(), folder / "model");
  const auto refuse = [&](const EngineOptions& options, Error::Kind kind, const char* message) {
    test::expect_error(
        kind, [&] { const FrontEnd front_end(folder / "model", options); }, HasSubstr(message));
  };
  EngineOptions options;
  options.max_model_len = 513;
  refuse(options, Error::bad_argument, "max_model_len: 513");
  options = {};
  options.tp = 3;
  refuse(options, Error::unsupported, "--tp 3");
  options = {};
  options.contracts = {"/nowhere.json"};
  refuse(options, Error::bad_file, "/nowhere.json");
  options = {};
  options.device = "cuda";
  refuse(options, Error::missing_capability, "does without a GPU");
}

TEST(Engine, ADeviceThatIsNotThereIsAMissingCapability) {
  EngineOptions options = one_thread();
  options.device = "cuda";
  test::expect_error(
      Error::missing_capability, [&] { const Engine engine(tiny_model(), options); }, HasSubstr("does without a GPU"));
}

TEST(Engine, MoreThanOneRankIsRefusedWithTheReason) {
  EngineOptions options = one_thread();
  for (const int tp : {2, 3}) {
    options.tp = tp;
    test::expect_error(
        Error::unsupported, [&] { const Engine engine(tiny_model(), options); },
        AllOf(HasSubstr("--tp " + std::to_string(tp)), HasSubstr("no communicator"),
              testing::EndsWith("legal value: 1")));
  }
  options.tp = 1;
  options.pp = 2;
  test::expect_error(
      Error::unsupported, [&] { const Engine engine(tiny_model(), options); }, HasSubstr("--pp 2"));
}

TEST(Engine, EnginesOnDifferentInstructionSetsMayTakeTurns) {
  const auto alone = [](cpu::Isa isa) {
    EngineOptions options = one_thread();
    options.cpu_isa = cpu::to_string(isa);
    return Engine(tiny_model(), options).logits(kShortPrompt, 8);
  };
  const cpu::Isa best = cpu::available_isas().front();
  const std::vector<float> expected_best = alone(best);
  const std::vector<float> expected_portable = alone(cpu::Isa::portable);

  EngineOptions options = one_thread();
  Engine on_best(tiny_model(), options);
  options.cpu_isa = "portable";
  Engine on_portable(tiny_model(), options);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(on_best.logits(kShortPrompt, 8), expected_best);
    EXPECT_EQ(on_portable.logits(kShortPrompt, 8), expected_portable);
  }
  EXPECT_EQ(on_portable.plan().hardware().isa, "portable");
}

TEST(Engine, AContextOfTheUsersChoiceBoundsPromptAndOutput) {
  EngineOptions options = one_thread();
  options.max_model_len = 9;
  Engine engine(tiny_model(), options);
  EXPECT_EQ(engine.generate({.prompt = kShortPrompt, .ignore_eos = true}).output_ids.size(), 3U);
  const std::vector<TokenId> ten(10, 3);
  test::expect_error(
      Error::bad_argument, [&] { engine.generate({.prompt = ten}); },
      HasSubstr("prompt: 10 tokens in a context of 9; expected at most 8"));
}

}  // namespace
}  // namespace qpn8
