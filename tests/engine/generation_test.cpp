#include "engine/generation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/fake_model.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using test::FakeModel;
using test::favour;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kVocabulary = 16;
constexpr TokenId kEnd = 1;

/// Each id is a byte of text: 0 to 15 are the letters a to p.
std::string tokenizer_json() {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (int i = 0; i < kVocabulary - 2; ++i) vocabulary[std::string(1, static_cast<char>('a' + i))] = i;
  return nlohmann::json{{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}},
                        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
                        {"decoder", {{"type", "ByteLevel"}}}}
      .dump();
}

class Generation : public testing::Test {
 protected:
  /// A model that goes on with the token after the last one, modulo the vocabulary.
  static std::vector<float> count_up(const std::vector<TokenId>& sequence) {
    return favour((sequence.back() + 1) % static_cast<TokenId>(kVocabulary), kVocabulary);
  }

  void use(FakeModel::Rule rule, std::int64_t max_rows = 8) {
    model_ = std::make_unique<FakeModel>(kVocabulary, std::move(rule));
    cache_ = model_->make_cache(1, context_length_, DType::f16);
    runner_ = std::make_unique<SequenceRunner>(backend_, *model_, *cache_, max_rows);
  }

  GenerationResult generate(const GenerationRequest& request, const TextSink& on_text = nullptr) {
    if (!model_) use(count_up);
    const std::vector<TokenId> ends = {kEnd};
    return qpn8::generate({.runner = *runner_,
                           .sampler = sampler_,
                           .tokenizer = tokenizer_ ? &*tokenizer_ : nullptr,
                           .vocabulary = kVocabulary,
                           .context_length = context_length_,
                           .end_tokens = ends},
                          request, on_text);
  }

  std::int64_t context_length_ = 32;
  std::optional<Tokenizer> tokenizer_ = Tokenizer::parse(tokenizer_json(), "tokenizer.json");
  test::MemoryBackend backend_;
  Sampler sampler_{kVocabulary};
  std::unique_ptr<FakeModel> model_;
  std::unique_ptr<Cache> cache_;
  std::unique_ptr<SequenceRunner> runner_;
};

TEST_F(Generation, GoesOnUntilMaxTokens) {
  const GenerationResult result = generate({.prompt = {3}, .max_tokens = 4});
  EXPECT_THAT(result.output_ids, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(result.text, "efgh");
  EXPECT_EQ(result.finish_reason, FinishReason::length);
}

TEST_F(Generation, StopsAtAnEndTokenWhichIsNotPartOfTheOutput) {
  const GenerationResult result = generate({.prompt = {13}});
  EXPECT_THAT(result.output_ids, ElementsAre(14, 15, 0));
  EXPECT_EQ(result.text, "a");  // 14 and 15 are beyond the tokenizer's vocabulary, as padding is
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
}

TEST_F(Generation, AnEndTokenAtOnceGivesAnEmptyOutput) {
  const GenerationResult result = generate({.prompt = {0}});
  EXPECT_THAT(result.output_ids, IsEmpty());
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
  EXPECT_GT(result.ttft_ms, 0);
  EXPECT_EQ(result.decode_tokens_per_s, 0);
}

TEST_F(Generation, IgnoreEosGoesOn) {
  const GenerationResult result = generate({.prompt = {0}, .max_tokens = 3, .ignore_eos = true});
  EXPECT_THAT(result.output_ids, ElementsAre(1, 2, 3));
}

TEST_F(Generation, TheOutputIsCutToTheContext) {
  context_length_ = 8;
  const GenerationResult result = generate({.prompt = {2, 3, 4}, .max_tokens = 100});
  EXPECT_EQ(result.output_ids.size(), 5U);
  EXPECT_EQ(result.finish_reason, FinishReason::length);
  EXPECT_EQ(runner_->length(), 7);  // the last token is not fed back
}

TEST_F(Generation, AStopTextAcrossTokensEndsTheOutputAndIsNotShown) {
  std::vector<std::string> pieces;
  const GenerationResult result =
      generate({.prompt = {2}, .stop = {"fgh", "xyz"}}, [&](std::string_view piece) { pieces.emplace_back(piece); });
  EXPECT_EQ(result.text, "de");
  EXPECT_THAT(pieces, ElementsAre("d", "e"));
  EXPECT_THAT(result.output_ids, ElementsAre(3, 4, 5, 6, 7));
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
}

TEST_F(Generation, TextThatWasHeldBackIsShownAtTheEnd) {
  const GenerationResult result = generate({.prompt = {2}, .max_tokens = 2, .stop = {"ef"}});
  EXPECT_EQ(result.text, "de");
  EXPECT_EQ(result.finish_reason, FinishReason::length);
}

TEST_F(Generation, TheStreamedPiecesAreTheText) {
  std::string streamed;
  const GenerationResult result =
      generate({.prompt = {2}, .max_tokens = 11, .stop = {"lmno"}}, [&](std::string_view piece) { streamed += piece; });
  EXPECT_EQ(streamed, result.text);
  EXPECT_EQ(result.text, "defghijklmn");
}

TEST_F(Generation, APromptIsRunInChunksAndLogitsAreAskedOfItsLastTokenOnly) {
  use(
      [](const std::vector<TokenId>& sequence) {
        EXPECT_GE(sequence.size(), 7U);
        return count_up(sequence);
      },
      3);
  generate({.prompt = {2, 3, 4, 5, 6, 7, 8}, .max_tokens = 3});
  EXPECT_THAT(model_->passes, ElementsAre(3, 3, 1, 1, 1));
}

TEST_F(Generation, EachRequestStartsFromAnEmptySequence) {
  EXPECT_EQ(generate({.prompt = {2}, .max_tokens = 3}).text, "def");
  EXPECT_EQ(generate({.prompt = {5, 6}, .max_tokens = 2}).text, "hi");
}

TEST_F(Generation, SampledOutputFollowsItsSeed) {
  use([](const std::vector<TokenId>&) { return std::vector<float>(kVocabulary, 0.0F); });
  const auto output = [&](std::uint64_t seed) {
    return generate({.prompt = {2}, .max_tokens = 20, .sampling = {.temperature = 1, .seed = seed}, .ignore_eos = true})
        .output_ids;
  };
  EXPECT_EQ(output(1), output(1));
  EXPECT_NE(output(1), output(2));
}

TEST_F(Generation, ThePenaltySeesThePrompt) {
  use([](const std::vector<TokenId>&) {
    std::vector<float> logits(kVocabulary, 0.0F);
    logits[5] = 3.0F;
    logits[6] = 2.0F;
    return logits;
  });
  EXPECT_THAT(generate({.prompt = {5}, .max_tokens = 1, .sampling = {.repetition_penalty = 2.0}}).output_ids,
              ElementsAre(6));
}

TEST_F(Generation, DecodeSpeedCountsTheStepsAfterTheFirstToken) {
  const GenerationResult one = generate({.prompt = {2}, .max_tokens = 1});
  EXPECT_EQ(one.decode_tokens_per_s, 0);
  EXPECT_GT(one.ttft_ms, 0);
  EXPECT_GT(generate({.prompt = {2}, .max_tokens = 5}).decode_tokens_per_s, 0);
}

TEST_F(Generation, NonFiniteLogitsNameTheLayerAndTheEngineCanBeUsedAgain) {
  const auto rule = [](const std::vector<TokenId>& sequence) {
    std::vector<float> logits = count_up(sequence);
    if (sequence.size() == 3) logits[4] = std::numeric_limits<float>::quiet_NaN();
    return logits;
  };
  use(rule);
  test::expect_error(
      Error::check_failed, [&] { generate({.prompt = {2}}); }, testing::StartsWith("model.layers.3"));
  EXPECT_EQ(generate({.prompt = {2}, .max_tokens = 2}).text, "de");
}

TEST_F(Generation, WithoutATokenizerThereAreIdsAndNoText) {
  tokenizer_.reset();
  const GenerationResult result = generate({.prompt = {3}, .max_tokens = 2});
  EXPECT_THAT(result.output_ids, ElementsAre(4, 5));
  EXPECT_EQ(result.text, "");
  test::expect_error(
      Error::bad_argument, [&] { generate({.prompt = {3}, .stop = {"x"}}); }, HasSubstr("no tokenizer"));
}

TEST_F(Generation, EachBadRequestSaysWhatIsWrong) {
  struct Case {
    GenerationRequest request;
    std::string message;
  };
  const std::vector<TokenId> full(32, 2);
  const std::vector<TokenId> long_prompt(33, 2);
  const std::vector<Case> cases = {
      {{.prompt = {}}, "prompt: is empty"},
      {{.prompt = long_prompt}, "prompt has 33 tokens; the context is 32"},
      {{.prompt = full}, "prompt has 32 tokens, as many as the context"},
      {{.prompt = {2, 16}}, "token 16 is outside the model's vocabulary of 16"},
      {{.prompt = {-1}}, "token -1 is outside"},
      {{.prompt = {2}, .max_tokens = 0}, "max_tokens: must be at least 1"},
      {{.prompt = {2}, .sampling = {.top_p = 2}}, "top_p"},
      {{.prompt = {2}, .stop = {""}}, "must not be empty"},
  };
  for (const Case& c : cases) {
    test::expect_error(
        Error::bad_argument, [&] { generate(c.request); }, HasSubstr(c.message));
  }
}

TEST_F(Generation, LogitsOfEveryPositionDoNotDependOnTheChunk) {
  use(count_up, 4);
  const std::vector<TokenId> ids = {2, 3, 4, 9, 8, 7, 6};
  std::vector<float> expected;
  for (std::size_t i = 1; i <= ids.size(); ++i) {
    const std::vector<float> row = count_up({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i)});
    expected.insert(expected.end(), row.begin(), row.end());
  }
  for (const std::int64_t chunk : {1, 3, 4, 100}) {
    std::vector<float> logits(expected.size());
    runner_->reset();
    runner_->extend(ids, chunk, logits);
    EXPECT_EQ(logits, expected) << chunk;
  }
}

}  // namespace
}  // namespace qpn8
