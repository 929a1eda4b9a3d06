#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/json_view.hpp"
#include "text/pattern.hpp"
#include "text/segment.hpp"
#include "text/unicode.hpp"

namespace qpn8::text {

/// The normaliser of a tokenizer.json: steps that rewrite a segment, one after the other. Immutable and thread-safe.
class Normalizer {
 public:
  /// A null gives none. An unknown type is Error::unsupported.
  static Normalizer parse(const JsonView& view);

  void apply(Segment& segment) const;

 private:
  struct Normalize {
    NormalForm form;
    void apply(Segment& segment) const;
  };
  struct Lowercase {
    static void apply(Segment& segment);
  };
  /// Removes white space from the ends.
  struct Strip {
    bool left;
    bool right;
    void apply(Segment& segment) const;
  };
  /// Removes every combining mark.
  struct StripAccents {
    static void apply(Segment& segment);
  };
  struct Prepend {
    std::string content;
    void apply(Segment& segment) const;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
    void apply(Segment& segment) const;
  };
  using Step = std::variant<Normalize, Lowercase, Strip, StripAccents, Prepend, Replace>;

  static Step parse_step(std::string_view type, const JsonView& view);

  std::vector<Step> steps_;
};

}  // namespace qpn8::text
