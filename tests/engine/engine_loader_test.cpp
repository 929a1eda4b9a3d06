#include "engine/engine_loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelConfig config(std::int64_t positions) {
  ModelConfig config;
  config.file = "folder/config.json";
  config.vocab_size = 100;
  config.max_positions = positions;
  config.eos_tokens = {7};
  return config;
}

GenerationConfig ends_with(std::vector<std::int64_t> ids) {
  GenerationConfig generation;
  generation.eos_tokens = std::move(ids);
  return generation;
}

TEST(ContextLength, IsTheConfigsUnlessLessIsAskedFor) {
  EXPECT_EQ(context_length(config(1024), 0), 1024);
  EXPECT_EQ(context_length(config(1024), 1), 1);
  EXPECT_EQ(context_length(config(1024), 1024), 1024);
  EXPECT_EQ(context_length(config(0), 77), 77);
}

TEST(ContextLength, MoreThanTheModelHasPositionsForIsRefused) {
  test::expect_error(
      Error::bad_argument, [] { context_length(config(1024), 1025); },
      AllOf(HasSubstr("max_model_len: 1025"), HasSubstr("1 to 1024")));
  test::expect_error(
      Error::bad_argument, [] { context_length(config(0), 0); }, HasSubstr("max_position_embeddings"));
}

TEST(EndTokens, TheGenerationConfigsWinOverTheConfigs) {
  EXPECT_THAT(end_tokens(config(8), {}, "folder"), ElementsAre(7));
  EXPECT_THAT(end_tokens(config(8), ends_with({3, 4}), "folder"), ElementsAre(3, 4));
  ModelConfig none = config(8);
  none.eos_tokens.clear();
  EXPECT_THAT(end_tokens(none, {}, "folder"), IsEmpty());
}

TEST(EndTokens, AnIdOutsideTheVocabularyNamesItsFile) {
  test::expect_error(
      Error::bad_file,
      [] {
        end_tokens(config(8), ends_with({3, 100}), "folder");
      },
      AllOf(HasSubstr("folder/generation_config.json"), HasSubstr("100")));
  ModelConfig bad = config(8);
  bad.eos_tokens = {-1};
  test::expect_error(
      Error::bad_file, [&] { end_tokens(bad, {}, "folder"); }, HasSubstr("folder/config.json"));
}

}  // namespace
}  // namespace qpn8
