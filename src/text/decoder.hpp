#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_view.hpp"
#include "text/metaspace.hpp"
#include "text/pattern.hpp"

namespace qpn8::text {

class DecodeStage;

/// Text in the making: tokens go in one by one, what is certain comes out. Movable; used by one thread at a time.
class DecodeStream {
 public:
  ~DecodeStream();
  DecodeStream(DecodeStream&&) noexcept;
  DecodeStream& operator=(DecodeStream&&) noexcept;

  void push(std::string_view token);
  /// No more tokens come; what was held back is certain now.
  void finish();
  /// The text that became certain since the last call.
  std::string take();

 private:
  friend class Decoder;
  DecodeStream();

  std::unique_ptr<std::string> text_;                 // at a fixed place, for the last stage to write to
  std::vector<std::unique_ptr<DecodeStage>> stages_;  // in reverse: the last of them reads the tokens
};

/// The decoder of a tokenizer.json: steps that turn tokens into text. Immutable and thread-safe.
class Decoder {
 public:
  /// A null joins the tokens with spaces. An unknown type is Error::unsupported.
  static Decoder parse(const JsonView& view);

  /// The decoder must outlive the stream.
  DecodeStream open() const;

 private:
  // The steps' settings; decoder.cpp has the stage that runs each.
  struct Join {};          ///< puts a space between tokens
  struct ByteLevel {};     ///< reads tokens in the byte-level alphabet
  struct ByteFallback {};  ///< reads tokens such as "<0x0A>"
  struct Fuse {};          ///< makes one token of all
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  struct Strip {
    std::string content;  ///< one code point
    std::size_t start;    ///< most of them to remove from the beginning of each token
    std::size_t stop;     ///< and from its end
  };
  using Step = std::variant<Join, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace>;

  static Step parse_step(std::string_view type, const JsonView& view);
  static void add_stages(const Step& step, DecodeStream& stream);

  std::vector<Step> steps_;
};

}  // namespace qpn8::text
