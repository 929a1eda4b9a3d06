#pragma once

#include <cstdint>
#include <string>

#include "base/json_view.hpp"

namespace qpn8::text {

/// Settings that the pre-tokeniser Metaspace and the decoder of that name share: spaces are written as a visible
/// character, and one may be put before the text.
struct Metaspace {
  enum class Prepend : std::uint8_t { always, first, never };

  std::string replacement;  ///< one code point
  Prepend prepend = Prepend::always;

  /// Reads `replacement`, `prepend_scheme` and the older `add_prefix_space`.
  static Metaspace parse(const JsonView& view);
};

}  // namespace qpn8::text
