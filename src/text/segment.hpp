#pragma once

#include <string>

namespace qpn8::text {

/// A piece of the text on its way to the model.
struct Segment {
  std::string text;  ///< well-formed UTF-8
  /// Whether its first character comes from the first character of the whole text; Metaspace's scheme "first" asks.
  bool starts_input = false;
};

}  // namespace qpn8::text
