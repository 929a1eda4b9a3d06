// The work of encoding, counted: it must grow as the text does and not with its square, whatever the characters.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/tokenizers.hpp"
#include "text/bpe.hpp"

namespace qpn8::test {
namespace {

using nlohmann::json;

/// All words of a and b up to eight characters, each but the shortest a merge of its halves.
json doubling_tokenizer() {
  std::vector<std::string> tokens = {"a", "b"};
  json merges = json::array();
  for (std::size_t length = 1; length < 8; length *= 2) {
    const std::vector<std::string> known = tokens;
    for (const std::string& left : known) {
      for (const std::string& right : known) {
        if (left.size() != length || right.size() != length) continue;
        tokens.push_back(left + right);
        merges.push_back({left, right});
      }
    }
  }
  json file = tokenizer_of(tokens);
  file["model"]["merges"] = merges;
  return file;
}

std::string run_of_one(std::size_t length) { return std::string(length, 'a'); }

std::string alternating(std::size_t length) {
  std::string word(length, 'a');
  for (std::size_t i = 1; i < length; i += 2) word[i] = 'b';
  return word;
}

std::string random_word(std::size_t length) {
  std::mt19937 random(1);
  std::string word(length, 'a');
  for (char& character : word) {
    if (random() % 2 == 0) character = 'b';
  }
  return word;
}

TEST(BpeWork, IsAFewLookUpsACharacterHoweverLongTheWord) {
  const json file = doubling_tokenizer();
  const text::JsonView root(file, "t.json");
  const text::Bpe bpe = text::Bpe::parse(root["model"]);
  for (const auto& word_of : {run_of_one, alternating, random_word}) {
    for (const std::size_t length : {10U, 1'000U, 100'000U}) {
      const std::string word = word_of(length);
      TokenIds ids;
      const std::size_t lookups = bpe.encode(word, ids);
      EXPECT_GE(lookups, length - 1) << "each pair of neighbours is looked up";
      EXPECT_LE(lookups, 6 * length) << word.substr(0, 8) << "..., " << length;
      EXPECT_LE(ids.size(), length / 2);
    }
  }
}

// Every stage, not the merges alone. Quadratic work on a million characters would run into the tests' time limit.
TEST(BpeWork, AMillionCharactersAreEncoded) {
  const Tokenizer tokenizer(repository() / "models/wordmath-11m/tokenizer.json");
  for (const std::string& text : {run_of_one(1'000'000), random_word(100'000)}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

}  // namespace
}  // namespace qpn8::test
