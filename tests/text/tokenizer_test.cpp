#include "text/tokenizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "qpn8/error.hpp"
#include "support/tokenizers.hpp"

namespace qpn8::test {
namespace {

using nlohmann::json;

TEST(Tokenizer, Qwen3EncodesAndDecodesAsTheReferenceDoes) {
  const auto folder = shared_data("tokenizers/qwen3");
  if (!folder) GTEST_SKIP() << "needs ../shared/tokenizers, which is not here";
  const Tokenizer tokenizer(*folder / "tokenizer.json");
  EXPECT_EQ(tokenizer.vocabulary_size(), 151669);
  const std::vector<json> golden = read_json_lines(*folder / "golden.jsonl");
  ASSERT_EQ(golden.size(), 316U);
  for (const json& line : golden) {
    const auto ids = line["ids"].get<TokenIds>();
    EXPECT_EQ(tokenizer.encode(line["text"].get<std::string>()), ids) << line;
    EXPECT_EQ(tokenizer.decode(ids), line["decoded"].get<std::string>()) << line;
    EXPECT_EQ(stream_decode(tokenizer, ids), line["decoded"].get<std::string>()) << line;
  }
}

std::vector<json> goldens_of(const std::string& small) {
  std::vector<json> lines = read_json_lines(data() / "tokenizers" / (small + ".golden.jsonl"));
  EXPECT_GE(lines.size(), 20U) << small;
  return lines;
}

TEST(Tokenizer, SmallOnesEncodeAsTheReferenceDoes) {
  for (const std::string& name : small_tokenizers()) {
    const Tokenizer tokenizer(small_tokenizer(name));
    int texts = 0;
    for (const json& line : goldens_of(name)) {
      if (!line.contains("text")) continue;
      const auto text = line["text"].get<std::string>();
      EXPECT_EQ(tokenizer.encode(text), line["ids"].get<TokenIds>()) << name << line;
      EXPECT_EQ(tokenizer.encode(text, true), line["special_ids"].get<TokenIds>()) << name << line;
      ++texts;
    }
    EXPECT_GE(texts, 20) << name;
  }
}

TEST(Tokenizer, SmallOnesDecodeAsTheReferenceDoes) {
  for (const std::string& name : small_tokenizers()) {
    const Tokenizer tokenizer(small_tokenizer(name));
    for (const json& line : goldens_of(name)) {
      const auto ids = line["ids"].get<TokenIds>();
      EXPECT_EQ(tokenizer.decode(ids), line["decoded"].get<std::string>()) << name << line;
      EXPECT_EQ(tokenizer.decode(ids, true), line["decoded_plain"].get<std::string>()) << name << line;
    }
  }
}

TEST(Tokenizer, WordmathTextsRoundTrip) {
  const Tokenizer tokenizer(repository() / "models/wordmath-11m/tokenizer.json");
  int texts = 0;
  for (const json& problem : read_json_lines(repository() / "models/wordmath_test.jsonl")) {
    for (const auto& [key, value] : problem.items()) {
      const auto text = value.get<std::string>();
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
      ++texts;
    }
  }
  EXPECT_GE(texts, 1024);
}

TEST(Tokenizer, AddsBosOnceWhetherOrNotTheTextBroughtIt) {
  const Tokenizer tokenizer(small_tokenizer("llama"));
  const TokenId bos = tokenizer.id_of("<s>").value();
  for (const std::string text : {"Ada", "<s>Ada", "<s>", ""}) {
    const TokenIds ids = tokenizer.encode(text, true);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), bos), 1) << text;
    EXPECT_EQ(ids.at(0), bos) << text;
  }
  EXPECT_EQ(tokenizer.encode("<s>Ada"), tokenizer.encode("<s>Ada", true));
}

TEST(Tokenizer, OfSeveralTokensBeforeTheTextAddsThoseThatTheTextLacks) {
  json file = tokenizer_of({"a", "<s>", "<en>"});
  file["added_tokens"] = {{{"id", 1}, {"content", "<s>"}, {"special", true}},
                          {{"id", 2}, {"content", "<en>"}, {"special", true}}};
  file["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "start"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"special_tokens", {{"start", {{"id", "start"}, {"ids", {1, 2}}, {"tokens", {"<s>", "<en>"}}}}}}};
  const Tokenizer tokenizer = parse(file);
  for (const std::string text : {"a", "<s>a", "<s><en>a"}) {
    EXPECT_EQ(tokenizer.encode(text, true), (TokenIds{1, 2, 0})) << text;
  }
}

TEST(Tokenizer, TextThatLooksLikeAByteTokenStaysText) {
  for (const bool ignore_merges : {false, true}) {
    json file = tokenizer_of({"<0x0A>", "<", "0", "x", "A", ">"});
    file["model"]["byte_fallback"] = true;
    file["model"]["ignore_merges"] = ignore_merges;
    file["decoder"] = {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
    file["added_tokens"] = {{{"id", 0}, {"content", "<0x0A>"}, {"special", false}}};
    const Tokenizer tokenizer = parse(file);
    const TokenIds ids = tokenizer.encode("<0x0A>");
    EXPECT_EQ(ids, (TokenIds{1, 2, 3, 2, 4, 5}));
    EXPECT_EQ(tokenizer.decode(ids), "<0x0A>");
    EXPECT_EQ(tokenizer.encode("\n"), (TokenIds{0}));
    EXPECT_EQ(tokenizer.decode(TokenIds{0}), "\n");
  }
}

TEST(Tokenizer, ReadsIllFormedTextAsReplacementCharacters) {
  const Tokenizer tokenizer(small_tokenizer("byte_level"));
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(tokenizer.encode("a\xFF"), tokenizer.encode("a" + replacement));
  EXPECT_EQ(tokenizer.encode("\xE2\x82"), tokenizer.encode(replacement));                                  // cut short
  EXPECT_EQ(tokenizer.encode("\xED\xA0\x80"), tokenizer.encode(replacement + replacement + replacement));  // surrogate
}

TEST(Tokenizer, NamesAnIdThatNoTokenHas) {
  json file = tokenizer_of({"a"});
  file["added_tokens"] = {{{"id", 7}, {"content", "<s>"}, {"special", true}}};
  const Tokenizer tokenizer = parse(file);
  EXPECT_EQ(tokenizer.vocabulary_size(), 8);
  for (const TokenId id : {-1, 3, 8}) {
    try {
      tokenizer.decode(TokenIds{0, id});
      FAIL() << id;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::bad_value);
      EXPECT_EQ(error.what(), "t.json: no token has the id " + std::to_string(id) + "; ids are below 8");
    }
  }
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer(repository() / "models/wordmath-11m/tokenizer.json");
  EXPECT_EQ(tokenizer.id_of("<|im_end|>"), 2);
  EXPECT_TRUE(tokenizer.is_special(2));
  EXPECT_FALSE(tokenizer.is_special(3));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
}

TEST(Tokenizer, NeedsTheUnknownTokenOnlyWhereATextDoes) {
  json file = tokenizer_of({"a"});
  file["model"]["unk_token"] = "<unk>";
  const Tokenizer tokenizer = parse(file);
  EXPECT_EQ(tokenizer.encode("aa"), (TokenIds{0, 0}));
  EXPECT_THROW(tokenizer.encode("b"), Error);
}

// With a merge at every step of the way, quadratic work on these would take minutes.
TEST(Tokenizer, EncodesLongRunsOfOneCharacter) {
  const std::string run(50'000, 'a');
  const Tokenizer words(repository() / "models/wordmath-11m/tokenizer.json");
  EXPECT_EQ(words.decode(words.encode(run)), run);

  json file = tokenizer_of({"a", "aa", "aaa", "aaaa"});
  file["model"]["merges"] = json::parse(R"([["a", "a"], ["aa", "a"], ["aa", "aa"]])");
  const Tokenizer one_word = parse(file);
  EXPECT_EQ(one_word.encode(run), TokenIds(run.size() / 4, 3));
  const std::string spaces(50'000, ' ');
  EXPECT_EQ(words.decode(words.encode(spaces + "x")), spaces + "x");
}

}  // namespace
}  // namespace qpn8::test
