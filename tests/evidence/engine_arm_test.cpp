#include "evidence/engine_arm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/model_copy.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using test::expect_error;

const std::filesystem::path kModel = test::repository() / "models" / "wordmath-11m";
const std::vector<ChatMessage> kQuestion = {{"user", "What is 2 + 3?"}};

EngineOptions dense() {
  EngineOptions options;
  options.threads = 1;
  options.qpn8 = "off";
  return options;
}

std::shared_ptr<Engine> engine() { return std::make_shared<Engine>(kModel, dense()); }

TEST(PlainPrompt, AsksForAnAnswerAndKeepsEarlierTurnsWithTheirs) {
  EXPECT_EQ(plain_prompt(kQuestion), "What is 2 + 3?\nAnswer:");
  const std::vector<ChatMessage> turns = {{"user", "First?"}, {"assistant", "One."}, {"user", "Second?"}};
  EXPECT_EQ(plain_prompt(turns), "First?\nAnswer: One.\n\nSecond?\nAnswer:");
  EXPECT_EQ(plain_prompt({}), "");
}

TEST(ConversationEncoder, FollowsTheFoldersTemplateWithTheGenerationPrompt) {
  const FrontEnd front_end(kModel, dense());
  EXPECT_EQ(ConversationEncoder(front_end).encode(kQuestion),
            front_end.encode_prompt("<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n<|im_start|>assistant\n"));
}

TEST(ConversationEncoder, WithoutATemplateItIsThePlainPrompt) {
  const test::TemporaryFolder folder;
  test::link_model_with_broken_weights(kModel, folder / "model");
  std::filesystem::remove(folder / "model/chat_template.jinja");
  const FrontEnd front_end(folder / "model", dense());
  EXPECT_EQ(ConversationEncoder(front_end).encode(kQuestion), front_end.encode_prompt("What is 2 + 3?\nAnswer:"));
}

TEST(ConversationEncoder, NeedsATokenizerAndATemplateThatTakesTheConversation) {
  const FrontEnd without(test::data() / "tiny-qwen3", dense());
  expect_error(
      Error::bad_file, [&] { ConversationEncoder{without}; }, "tokenizer.json");
  const test::TemporaryFolder folder;
  test::link_model_with_broken_weights(kModel, folder / "model");
  std::filesystem::remove(folder / "model/chat_template.jinja");
  test::write_text(folder / "model/chat_template.jinja", "{{ raise_exception('no users here') }}");
  const FrontEnd front_end(folder / "model", dense());
  expect_error(
      Error::bad_value, [&] { ConversationEncoder(front_end).encode(kQuestion); }, "no users here");
}

TEST(EngineArm, AnswersAsItsEngineDoes) {
  const auto shared = engine();
  const GenerationRequest settings = {.max_tokens = 9, .sampling = {.temperature = 1.5}, .ignore_eos = true};
  EngineArm arm(shared, settings);
  const ArmOutput output = arm.generate(kQuestion, 7);
  GenerationRequest request = settings;
  request.prompt = ConversationEncoder(shared->front_end()).encode(kQuestion);
  request.sampling.seed = 7;
  const GenerationResult expected = shared->generate(request);
  EXPECT_EQ(output.text, expected.text);
  EXPECT_EQ(output.tokens, expected.output_ids);
  EXPECT_TRUE(output.tokens_are_ids);
  EXPECT_EQ(output.token_count, 9);
  EXPECT_EQ(output.finish_reason, "length");
  EXPECT_GT(output.ttft_ms, 0);
  EXPECT_GT(output.decode_tokens_per_s, 0);
  EXPECT_NE(arm.generate(kQuestion, 8).tokens, output.tokens) << "the seed is the item's";
}

TEST(EngineArm, SaysWhyAnOutputEnded) {
  EngineArm arm(engine(), {.max_tokens = 200});
  EXPECT_EQ(arm.generate(kQuestion, 0).finish_reason, "stop");
}

TEST(EngineArm, ShowsItsOptionsAndThePlanThatRuns) {
  const EngineArm arm(engine(), {});
  EXPECT_EQ(arm.config(), dense().to_json());
  EXPECT_EQ(arm.plan().value().at("summary").at("qpn8"), 0);
}

TEST(EngineArm, RefusesSettingsOutOfRangeAndAModelWithoutATokenizer) {
  expect_error(
      Error::bad_argument, [] { EngineArm(engine(), {.max_tokens = 0}); }, "max_tokens 0");
  expect_error(
      Error::bad_argument, [] { EngineArm(engine(), {.sampling = {.top_p = 2}}); }, "top_p 2");
  expect_error(
      Error::bad_file, [] { EngineArm(std::make_shared<Engine>(test::data() / "tiny-qwen3", dense()), {}); },
      "tokenizer.json");
}

TEST(EngineArm, AnOverflowEndsTheOutputNamingTheLayer) {
  const test::TemporaryFolder folder;
  test::copy_model_with(kModel, folder / "model", "model.layers.2.post_attention_layernorm.weight", 1e25F);
  EngineArm arm(std::make_shared<Engine>(folder / "model", dense()), {});
  expect_error(
      Error::check_failed, [&] { arm.generate(kQuestion, 0); }, "model.layers.2: ", "not finite");
}

TEST(RequireQpn8, RefusesACandidateWithoutAProjectionOnItAndSaysWhy) {
  const auto plan_of = [](const EngineOptions& options) {
    std::optional<Plan> seen;
    try {
      const Engine loaded(kModel, options,
                          {.planned =
                               [&](const Plan& plan) {
                                 seen = plan;
                                 throw Error(Error::bad_argument, "planted: the weights are not needed");
                               },
                           .loaded = nullptr});
    } catch (const Error&) {
      EXPECT_TRUE(seen);
    }
    return seen.value();
  };
  EngineOptions on = dense();
  on.qpn8 = "on";
  require_qpn8(plan_of(on));
  expect_error(
      Error::missing_capability, [&] { require_qpn8(plan_of(dense())); }, "arm b", "qpn8 plan");
}

}  // namespace
}  // namespace qpn8
