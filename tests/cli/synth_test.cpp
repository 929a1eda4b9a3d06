#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/model_config.hpp"
#include "checkpoint/synthetic_tokenizer.hpp"
#include "cli/commands.hpp"
#include "qpn8/error.hpp"
#include "support/error_of.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {
namespace {

using test::error_of;

/// The message of `qpn8 synth --like ... --out FOLDER/out` with these flags.
std::string synth(const test::TemporaryFolder& folder, const std::string& like, std::vector<std::string> flags) {
  CLI::App program("", "qpn8");
  cli::add_synth(program);
  const std::vector<std::string> command = {"synth", "--like", like, "--out", (folder / "out").string()};
  flags.insert(flags.begin(), command.begin(), command.end());
  std::vector<std::string> backwards(flags.rbegin(), flags.rend());  // as CLI11 takes them
  return error_of([&] { program.parse(std::move(backwards)); });
}

TEST(Synth, EachBadFlagIsNamedAndWritesNothing) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(synth(folder, "gpt-5", {}), testing::StartsWith("--like gpt-5: is not a known model, expected one of "));
  EXPECT_EQ(synth(folder, "qwen3-0.6b", {"--layers", "29"}), "--layers 29: expected 1 to 28");
  EXPECT_EQ(synth(folder, "qwen3-0.6b", {"--layers", "0"}), "--layers 0: expected 1 to 28");
  EXPECT_EQ(synth(folder, "qwen3-0.6b", {"--experts", "4"}), "--experts 4: model_type qwen3 has none");
  EXPECT_EQ(synth(folder, "qwen3-30b-a3b", {"--experts", "1"}), "--experts 1: expected 8 to 128");
  EXPECT_EQ(synth(folder, "qwen3-0.6b", {"--dtype", "f32"}), "--dtype f32: expected f16 or bf16");
  EXPECT_EQ(synth(folder, "qwen3-0.6b", {"--seed", "-1"}), "--seed -1: is not an integer of at least 0");
  EXPECT_EQ(synth(folder, "qwen3-0.6b", {"--shard-mb", "0"}), "--shard-mb 0: expected 1 to 1073741824");
  EXPECT_EQ(synth(folder, "qwen3-0.6b", {"--threads", "2000"}), "--threads 2000: expected 0 to 1024");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Synth, AFolderThatIsNotEmptyIsLeftAlone) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "out");
  folder.write("out/kept", "x");
  EXPECT_EQ(synth(folder, "qwen3-0.6b", {}),
            (folder / "out").string() + ": is not empty, expected a new or an empty folder");
}

class SyntheticTokenizer : public testing::Test {
 protected:
  SyntheticTokenizer() { write_synthetic_tokenizer(config_, folder_.path()); }

  ModelConfig config_ = load_model_config(test::data() / "tiny-qwen3");
  test::TemporaryFolder folder_;
};

TEST_F(SyntheticTokenizer, EncodesAnyTextAndDecodesItBack) {
  const Tokenizer tokenizer(folder_ / "tokenizer.json");
  std::string every_byte;
  for (char32_t code = 0; code < 0x80; ++code) every_byte += static_cast<char>(code);
  for (const std::string& text : {std::string(), std::string("Hello,  world\n\n 123"),
                                  std::string("naïve 漢字 🙂"), every_byte, std::string(" t300")}) {
    const std::vector<TokenId> ids = tokenizer.encode(text);
    EXPECT_EQ(ids.size(), text.size());
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

TEST_F(SyntheticTokenizer, DecodesEveryIdOfTheVocabulary) {
  const Tokenizer tokenizer(folder_ / "tokenizer.json");
  ASSERT_EQ(tokenizer.vocabulary_size(), config_.vocab_size);
  for (TokenId id = 0; id < static_cast<TokenId>(config_.vocab_size); ++id) {
    EXPECT_FALSE(tokenizer.decode(std::vector<TokenId>{id}).empty()) << id;
  }
}

TEST_F(SyntheticTokenizer, AConversationBecomesItsSpecialTokens) {
  const Tokenizer tokenizer(folder_ / "tokenizer.json");
  const TokenId start = tokenizer.id_of("<|im_start|>").value();
  const std::vector<TokenId> ids = tokenizer.encode("<|im_start|>user\nHi<|im_end|>\n");
  EXPECT_EQ(ids.front(), start);
  EXPECT_EQ(ids[8], config_.eos_tokens.front());
  EXPECT_TRUE(tokenizer.is_special(start));
}

}  // namespace
}  // namespace qpn8
