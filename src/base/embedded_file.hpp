#pragma once

#include <span>
#include <string_view>

namespace qpn8 {

/// A text file of the repository that was compiled in (see cmake/Qpn8Embed.cmake).
struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};

}  // namespace qpn8
