#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/shared_data.hpp"
#include "text/tokenizer.hpp"

namespace qpn8::test {

using TokenIds = std::vector<TokenId>;

/// The lines of a JSON-lines file.
inline std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// The small tokenizers of tests/data/tokenizers; its README says what each stands for.
inline const std::vector<std::string>& small_tokenizers() {
  static const std::vector<std::string> names = {"llama",       "metaspace",   "replace",       "byte_level",
                                                 "split_regex", "normalizers", "subword_prefix"};
  return names;
}

inline std::filesystem::path small_tokenizer(const std::string& name) {
  return data() / "tokenizers" / (name + ".json");
}

/// Decodes id by id.
inline std::string stream_decode(const Tokenizer& tokenizer, const TokenIds& ids, bool skip_special = false) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::string text;
  for (const TokenId id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

/// A tokenizer.json with these tokens, in the order of their ids, and nothing else,
/// to be completed by a test.
inline nlohmann::json tokenizer_of(const std::vector<std::string>& tokens) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (const std::string& token : tokens) {
    const std::size_t id = vocabulary.size();
    vocabulary[token] = id;
  }
  return {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}};
}

inline Tokenizer parse(const nlohmann::json& tokenizer) { return Tokenizer::parse(tokenizer.dump(), "t.json"); }

}  // namespace qpn8::test
