#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/utf8.hpp"
#include "text/metaspace.hpp"
#include "text/pattern.hpp"

// The stages of a decoder. Each reads a stream of tokens and writes another one to the next stage, as early as the
// result is certain, so that decoding at once and decoding id by id are the same computation.

namespace qpn8::text {

/// Reads tokens. The text of a token may come in several pieces, each of whole code points.
class DecodeStage {
 public:
  DecodeStage() = default;
  virtual ~DecodeStage() = default;
  DecodeStage(const DecodeStage&) = delete;
  DecodeStage& operator=(const DecodeStage&) = delete;

  /// More text of the current token.
  virtual void append(std::string_view piece) = 0;
  virtual void end_token() = 0;
  /// No more tokens come.
  virtual void finish() = 0;

 protected:
  /// Writes a whole token to another stage.
  static void write(DecodeStage& next, std::string_view token) {
    next.append(token);
    next.end_token();
  }
};

/// The end of the chain: the text of all tokens.
class CollectStage final : public DecodeStage {
 public:
  explicit CollectStage(std::string& text) : text_(text) {}
  void append(std::string_view piece) override { text_ += piece; }
  void end_token() override {}
  void finish() override {}

 private:
  std::string& text_;
};

/// A stage that needs each token as a whole.
class WholeTokenStage : public DecodeStage {
 public:
  void append(std::string_view piece) final { token_ += piece; }
  void end_token() final;

 private:
  virtual void token(std::string_view text) = 0;
  std::string token_;
};

class JoinStage final : public DecodeStage {
 public:
  explicit JoinStage(DecodeStage& next) : next_(next) {}
  void append(std::string_view piece) override;
  void end_token() override;
  void finish() override { next_.finish(); }

 private:
  DecodeStage& next_;
  bool at_token_start_ = true;
  bool is_first_ = true;
};

/// The bytes of all tokens as one token, ill-formed sequences replaced by U+FFFD. A token with a character outside the
/// byte-level alphabet stands for its own bytes.
class ByteLevelStage final : public WholeTokenStage {
 public:
  explicit ByteLevelStage(DecodeStage& next) : next_(next) {}
  void finish() override;

 private:
  void token(std::string_view text) override;
  DecodeStage& next_;
  Utf8Assembler assembler_;
};

/// A run of byte tokens becomes the text that they spell, or if that is not well-formed as a whole one U+FFFD a byte;
/// so the whole run is held back until it ends.
class ByteFallbackStage final : public WholeTokenStage {
 public:
  explicit ByteFallbackStage(DecodeStage& next) : next_(next) {}
  void finish() override;

 private:
  void token(std::string_view text) override;
  void end_run();
  DecodeStage& next_;
  std::string run_;
};

class FuseStage final : public DecodeStage {
 public:
  explicit FuseStage(DecodeStage& next) : next_(next) {}
  void append(std::string_view piece) override { next_.append(piece); }
  void end_token() override {}
  void finish() override;

 private:
  DecodeStage& next_;
};

class ReplaceStage final : public WholeTokenStage {
 public:
  ReplaceStage(const Pattern& pattern, const std::string& content, DecodeStage& next)
      : pattern_(pattern), content_(content), next_(next) {}
  void finish() override { next_.finish(); }

 private:
  void token(std::string_view text) override;
  const Pattern& pattern_;
  const std::string& content_;
  DecodeStage& next_;
};

/// Removes up to `most` of one character from the beginning of each token.
class StripStartStage final : public DecodeStage {
 public:
  StripStartStage(const std::string& content, std::size_t most, DecodeStage& next)
      : content_(content), most_(most), left_(most), next_(next) {}
  void append(std::string_view piece) override;
  void end_token() override;
  void finish() override { next_.finish(); }

 private:
  const std::string& content_;
  std::size_t most_;
  std::size_t left_;  // how many more this token may lose; 0 once it has begun
  DecodeStage& next_;
};

/// Removes up to `most` of one character from the end of each token, holding back those that may be the end.
class StripEndStage final : public DecodeStage {
 public:
  StripEndStage(const std::string& content, std::size_t most, DecodeStage& next)
      : content_(content), most_(most), next_(next) {}
  void append(std::string_view piece) override;
  void end_token() override;
  void finish() override { next_.finish(); }

 private:
  void release(std::size_t count);
  const std::string& content_;
  std::size_t most_;
  std::size_t held_ = 0;
  DecodeStage& next_;
};

/// Turns Metaspace's character into spaces; in the first token, where it was put before the text, into nothing.
class MetaspaceStage final : public DecodeStage {
 public:
  MetaspaceStage(const Metaspace& metaspace, DecodeStage& next) : metaspace_(metaspace), next_(next) {}
  void append(std::string_view piece) override;
  void end_token() override;
  void finish() override { next_.finish(); }

 private:
  const Metaspace& metaspace_;
  DecodeStage& next_;
  bool is_first_ = true;
};

}  // namespace qpn8::text
