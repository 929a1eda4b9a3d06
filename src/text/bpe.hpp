#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/json_view.hpp"
#include "text/tokenizer.hpp"
#include "text/vocabulary.hpp"

namespace qpn8::text {

/// Byte pair encoding: the model of a tokenizer.json. Immutable and thread-safe.
class Bpe {
 public:
  /// `view` is the file's `model`. Another type than BPE, or dropout, is Error::unsupported; merges that name unknown
  /// tokens are Error::bad_file.
  static Bpe parse(const JsonView& view);

  /// Appends the ids of one word, a well-formed text that is not empty. A character that no token covers is left out if
  /// there is no unknown token.
  /// Returns the pairs of symbols that it looked up to find what merges: at most six a character, even where the whole
  /// text is one word, so that with a heap of them the time is O(n log n).
  std::size_t encode(std::string_view word, std::vector<TokenId>& ids) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  bool has_byte_fallback() const { return byte_fallback_; }

 private:
  struct Merge {
    std::uint32_t rank = 0;
    TokenId result = 0;
  };
  struct UnknownToken {
    std::string token;
    std::optional<TokenId> id;
  };
  class Word;

  void parse_merges(const JsonView& view);
  void add_merge(std::string_view left, std::string_view right, std::uint32_t rank, const JsonView& place);
  const Merge* find_merge(TokenId left, TokenId right) const;
  bool append_byte_tokens(std::string_view character, std::vector<TokenId>& ids) const;
  TokenId unknown_id() const;
  std::vector<TokenId> initial_ids(std::string_view word) const;

  std::string place_;
  Vocabulary vocabulary_;
  std::unordered_map<std::uint64_t, Merge> merges_;  // by both ids
  std::array<std::optional<TokenId>, 256> byte_ids_;
  std::optional<UnknownToken> unknown_;
  std::string continuing_prefix_;
  std::string word_suffix_;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
};

}  // namespace qpn8::text
