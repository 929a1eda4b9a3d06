#include "engine/generation_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

constexpr RequestLimits kLimits = {.vocabulary = 10, .context_length = 4, .has_tokenizer = false};

TEST(GenerationRequest, MessagesNameItsPartsAsTheCallerDoes) {
  const RequestNames names = {.prompt = "--prompt-ids", .flags = true};
  struct Case {
    GenerationRequest request;
    const char* library;
    const char* command;
  };
  const std::vector<Case> cases = {
      {{.prompt = {1}, .max_tokens = -3}, "max_tokens -3: expected at least 1", "--max-tokens -3: expected at least 1"},
      {{.prompt = {1}, .sampling = {.temperature = -0.5}},
       "temperature -0.5: expected",
       "--temperature -0.5: expected"},
      {{.prompt = {1}, .sampling = {.repetition_penalty = 0}}, "repetition_penalty 0: ", "--repetition-penalty 0: "},
      {{.prompt = {1}, .stop = {"a", ""}}, "stop: is empty", "--stop: is empty"},
      {{.prompt = {1}, .stop = {"a"}}, "stop: the model has no tokenizer", "--stop: the model has no tokenizer"},
      {{.prompt = {}}, "prompt: is empty", "--prompt-ids: is empty"},
      {{.prompt = {1, 2, 3, 4, 5}},
       "prompt: 5 tokens in a context of 4; expected at most 3",
       "--prompt-ids: 5 tokens in a context of 4; expected at most 3"},
      {{.prompt = {1, 2, 3, 4}},
       "prompt: 4 tokens in a context of 4; expected at most 3",
       "--prompt-ids: 4 tokens in a context of 4; expected at most 3"},
      {{.prompt = {10}},
       "prompt: token 10 is outside the model's vocabulary; expected 0 to 9",
       "--prompt-ids: token 10 is outside the model's vocabulary; expected 0 to 9"},
  };
  for (const Case& c : cases) {
    test::expect_error(
        Error::bad_argument, [&] { require_valid(c.request, kLimits); }, testing::StartsWith(c.library));
    test::expect_error(
        Error::bad_argument, [&] { require_valid(c.request, kLimits, names); }, testing::StartsWith(c.command));
  }
  require_valid({.prompt = {1, 2, 9}}, kLimits);
}

TEST(RequirePrompt, APromptWithoutAnOutputMayFillTheContext) {
  require_prompt(std::vector<TokenId>{1, 2, 3, 4}, kLimits);
  test::expect_error(
      Error::bad_argument,
      [] {
        require_prompt(std::vector<TokenId>{1, 2, 3, 4, 5}, kLimits);
      },
      testing::HasSubstr("expected at most 4"));
}

}  // namespace
}  // namespace qpn8
