#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qpn8 {

/// Untrusted text as it may stand in a one-line message: control characters, the line and paragraph separators of
/// Unicode, and bytes that are not UTF-8 become \xNN, byte by byte. A text longer than `limit` bytes is cut between two
/// characters and ends in "...".
std::string printable(std::string_view text, std::size_t limit = 160);

/// The same in double quotes, with a backslash before each quote and backslash of the text's own.
std::string in_quotes(std::string_view text, std::size_t limit = 80);

}  // namespace qpn8
