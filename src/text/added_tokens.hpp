#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json_view.hpp"
#include "text/bpe.hpp"
#include "text/normalizer.hpp"
#include "text/regex.hpp"
#include "text/tokenizer.hpp"

namespace qpn8::text {

/// One entry of `added_tokens`.
struct AddedToken {
  TokenId id = 0;
  std::string content;   ///< what the file calls it
  std::string spelling;  ///< what it is in a text and decodes to: the content, normalised where `normalized` says so
  bool single_word = false;  ///< matches only where no word character touches it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space behind it along
  bool normalized = false;   ///< matches in the normalised text, else in the original
  bool special = false;
};

/// A part of a text that is an added token, or that has none in it.
struct AddedTokenPart {
  Range range;
  std::optional<TokenId> token;
};

/// Finds added tokens in a text: the leftmost, and of those that begin there the longest.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  /// No spelling is empty. Of tokens with the same spelling the first counts (the reference picks any).
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  std::vector<AddedTokenPart> split(std::string_view text) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;           // sorted by spelling
  std::array<std::size_t, 257> first_ = {};  // tokens whose spelling begins with byte b are [first_[b], first_[b + 1])
};

/// The added tokens of a tokenizer.json. Immutable and thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(AddedTokens&&) = default;  // no copies: ids_ refers to the texts in tokens_
  AddedTokens& operator=(AddedTokens&&) = default;

  /// Error::bad_file for an id that contradicts the model's vocabulary or that two entries share.
  static AddedTokens parse(const JsonView& view, const Bpe& model, const Normalizer& normalizer);

  const AddedTokenMatcher& in_original() const { return in_original_; }
  const AddedTokenMatcher& in_normalized() const { return in_normalized_; }

  const AddedToken* find(TokenId id) const;
  std::optional<TokenId> id_of(std::string_view content) const;
  /// One more than the largest id, 0 if there is none.
  std::size_t size() const { return size_; }

 private:
  std::unordered_map<TokenId, AddedToken> tokens_;
  std::unordered_map<std::string_view, TokenId> ids_;  // keys are the contents in tokens_
  std::size_t size_ = 0;
  AddedTokenMatcher in_original_;
  AddedTokenMatcher in_normalized_;
};

}  // namespace qpn8::text
