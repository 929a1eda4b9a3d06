#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qpn8 {

/// Untrusted text as it may stand in a one-line message: control characters become \xNN, and a text longer than `limit`
/// bytes is cut between two UTF-8 sequences and ends in "...".
std::string printable(std::string_view text, std::size_t limit = 160);

}  // namespace qpn8
