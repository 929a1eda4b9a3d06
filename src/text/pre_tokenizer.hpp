#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/json_view.hpp"
#include "text/metaspace.hpp"
#include "text/pattern.hpp"
#include "text/segment.hpp"

namespace qpn8::text {

/// What becomes of the matches at which a text is split.
enum class SplitBehavior : std::uint8_t { isolated, removed, merged_with_previous, merged_with_next, contiguous };

/// The ranges of a text of parts after a split; empty ones are left out.
std::vector<Range> split(const std::vector<Part>& parts, SplitBehavior behavior);

/// The pre-tokeniser of a tokenizer.json: steps that cut segments into words. Immutable and thread-safe.
class PreTokenizer {
 public:
  /// A null gives none. An unknown type is Error::unsupported.
  static PreTokenizer parse(const JsonView& view);

  /// The words of one segment, none empty.
  std::vector<Segment> apply(Segment segment) const;

 private:
  // Each step appends the words of one segment to `words`.
  struct Split {
    Pattern pattern;
    SplitBehavior behavior;
    bool invert;
    void apply(const Segment& segment, std::vector<Segment>& words) const;
  };
  struct Digits {
    bool individual;
    void apply(const Segment& segment, std::vector<Segment>& words) const;
  };
  struct ByteLevel {
    bool add_prefix_space;
    std::optional<Regex> words;  ///< GPT-2's pattern where use_regex is on
    void apply(Segment segment, std::vector<Segment>& words) const;
  };
  struct MetaspaceSplit {
    Metaspace metaspace;
    bool split;
    void apply(Segment segment, std::vector<Segment>& words) const;
  };
  using Step = std::variant<Split, Digits, ByteLevel, MetaspaceSplit>;

  static Step parse_step(std::string_view type, const JsonView& view);

  std::vector<Step> steps_;
};

}  // namespace qpn8::text
