#include "base/printable.hpp"

#include <fmt/format.h>

#include <iterator>

namespace qpn8 {

std::string printable(std::string_view text, std::size_t limit) {
  const bool cut = text.size() > limit;
  if (cut) {
    // Not in the middle of a UTF-8 sequence: its continuation bytes are 10xxxxxx.
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0U) == 0x80U) --limit;
    text = text.substr(0, limit);
  }
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return cut ? result + "..." : result;
}

}  // namespace qpn8
