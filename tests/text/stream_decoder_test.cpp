#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "qpn8/error.hpp"
#include "support/tokenizers.hpp"

namespace qpn8::test {
namespace {

using nlohmann::json;

json byte_fallback_tokenizer() {
  json file = tokenizer_of({"\u2581", "\u2581a", "b", "<0xE2>", "<0x82>", "<0xAC>"});
  file["model"]["byte_fallback"] = true;
  file["decoder"] = json::parse(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  return file;
}

TEST(StreamDecoder, PiecesOfRandomIdsConcatenateToTheirDecoding) {
  std::mt19937 random(11);
  for (const std::string& name : small_tokenizers()) {
    const Tokenizer tokenizer(small_tokenizer(name));
    std::uniform_int_distribution<TokenId> any_id(0, static_cast<TokenId>(tokenizer.vocabulary_size()) - 1);
    std::uniform_int_distribution<int> any_length(0, 30);
    for (int round = 0; round < 300; ++round) {
      TokenIds ids(static_cast<std::size_t>(any_length(random)));
      for (TokenId& id : ids) id = any_id(random);
      const bool skip_special = round % 2 == 1;
      EXPECT_EQ(stream_decode(tokenizer, ids, skip_special), tokenizer.decode(ids, skip_special)) << name << json(ids);
    }
  }
}

TEST(StreamDecoder, EveryPieceIsWholeCharacters) {
  const Tokenizer tokenizer(small_tokenizer("byte_level"));
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (const TokenId id : tokenizer.encode("x\U0001F600\u65E5")) {
    const std::string piece = decoder.push(id);
    EXPECT_NO_THROW(json(piece).dump()) << "the piece is not UTF-8";
    text += piece;
  }
  EXPECT_EQ(text, " x\U0001F600\u65E5") << "nothing certain is held back";
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, ReplacesASequenceThatIsNeverCompleted) {
  const Tokenizer tokenizer(small_tokenizer("byte_level"));
  const TokenId lead = tokenizer.id_of("\u00E6").value();  // 0xE6, the first byte of U+65E5
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(lead), "");
  EXPECT_EQ(decoder.push(tokenizer.id_of("a").value()), "\uFFFDa");
  EXPECT_EQ(decoder.push(lead), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
}

TEST(StreamDecoder, DropsOnlyTheSpaceBeforeTheText) {
  const Tokenizer tokenizer = parse(byte_fallback_tokenizer());
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(0), "");
  EXPECT_EQ(decoder.push(1), " a");
  EXPECT_EQ(decoder.push(1), " a");
}

TEST(StreamDecoder, HoldsARunOfByteTokensBackUntilItEnds) {
  const Tokenizer tokenizer = parse(byte_fallback_tokenizer());
  StreamDecoder decoder(tokenizer);
  for (const TokenId byte : {3, 4, 5}) EXPECT_EQ(decoder.push(byte), "");
  EXPECT_EQ(decoder.push(2), "\u20ACb");
  for (const TokenId byte : {3, 4, 5, 3}) EXPECT_EQ(decoder.push(byte), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(StreamDecoder, StripsTheEndsOfTokens) {
  json file = tokenizer_of({"xxaxx", "x", "xxxx"});
  file["decoder"] = {{"type", "Strip"}, {"content", "x"}, {"start", 1}, {"stop", 2}};
  const Tokenizer tokenizer = parse(file);
  EXPECT_EQ(tokenizer.decode(TokenIds{0}), "xa");
  EXPECT_EQ(tokenizer.decode(TokenIds{1}), "");
  EXPECT_EQ(stream_decode(tokenizer, {2, 0, 1}), "xxa");
}

TEST(StreamDecoder, OutlivesAMoveOfTheTokenizer) {
  Tokenizer tokenizer(small_tokenizer("llama"));
  StreamDecoder first(tokenizer);
  const Tokenizer moved = std::move(tokenizer);
  StreamDecoder decoder = std::move(first);
  EXPECT_EQ(decoder.push(moved.id_of("a").value()), "a");
}

TEST(StreamDecoder, NamesAnIdThatNoTokenHas) {
  const Tokenizer tokenizer = parse(tokenizer_of({"a"}));
  StreamDecoder decoder(tokenizer);
  EXPECT_THROW(decoder.push(1), Error);
  EXPECT_EQ(decoder.push(0), "a") << "the stream goes on";
}

}  // namespace
}  // namespace qpn8::test
