#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.hpp"
#include "text/bpe.hpp"
#include "text/decoder.hpp"
#include "text/normalizer.hpp"
#include "text/post_processor.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {

/// The parts of a tokenizer.json, composed.
class Tokenizer::Impl {
 public:
  /// The file's root; `truncation` and `padding` are settings of a caller, not of the tokenizer, and are not read.
  explicit Impl(const JsonView& root);

  std::vector<TokenId> encode(std::string_view text) const;
  std::vector<TokenId> with_special(const std::vector<TokenId>& ids) const { return post_processor_.apply(ids); }
  text::DecodeStream open_stream() const { return decoder_.open(); }

  /// The token of an id as the decoder reads it; Error::bad_value if there is none.
  const std::string& token(TokenId id) const;
  std::optional<TokenId> id_of(std::string_view token) const;
  bool is_special(TokenId id) const;
  std::int64_t vocabulary_size() const;

 private:
  void encode_segment(text::Segment segment, std::vector<TokenId>& ids) const;

  std::string file_;
  text::Bpe model_;
  text::Normalizer normalizer_;
  text::AddedTokens added_tokens_;
  text::PreTokenizer pre_tokenizer_;
  text::PostProcessor post_processor_;
  text::Decoder decoder_;
};

}  // namespace qpn8
