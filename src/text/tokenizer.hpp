#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qpn8 {

using TokenId = std::int32_t;

/// A Hugging Face tokenizer.json: byte-level BPE and the byte-fallback BPE family.
///
/// A component that is not supported (a model, normaliser, pre-tokeniser, post-processor or decoder) is
/// Error::unsupported naming it and the file; a malformed file is Error::bad_file. Immutable and thread-safe.
class Tokenizer {
 public:
  explicit Tokenizer(const std::filesystem::path& file);
  /// The same from the file's content; `name` is what errors call the file.
  static Tokenizer parse(std::string_view json, const std::filesystem::path& name);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Text to ids. Added tokens are recognised anywhere in the text, as the reference does; text that merely looks like
  /// a byte token ("<0x0A>") stays text. With `special` the post-processor adds BOS and the like; a BOS that the text
  /// starts with already is not added again. Time is O(n log n) in the text's length, whatever its characters.
  /// `text` is UTF-8; an ill-formed sequence is read as U+FFFD.
  std::vector<TokenId> encode(std::string_view text, bool special = false) const;

  /// Ids to text; with `skip_special` special tokens are left out. Bytes that are not UTF-8 become U+FFFD.
  /// An id outside the vocabulary is Error::bad_value naming it.
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;

  /// One more than the largest id.
  std::int64_t vocabulary_size() const;
  std::optional<TokenId> id_of(std::string_view token) const;
  bool is_special(TokenId id) const;

 private:
  friend class StreamDecoder;
  class Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Decodes ids one at a time and holds back what may still change: an incomplete UTF-8 sequence, a leading space, a run
/// of byte tokens (of which the reference replaces every byte if any is ill-formed).
/// The concatenation of all push() results and finish() equals Tokenizer::decode of all ids.
/// The tokenizer must outlive the decoder.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  /// The text that became certain with this id; may be empty. An id outside the vocabulary is Error::bad_value.
  std::string push(TokenId id);

  /// What was held back; an incomplete sequence becomes U+FFFD. Nothing may be pushed after it.
  std::string finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qpn8
