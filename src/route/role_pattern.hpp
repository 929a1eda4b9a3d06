#pragma once

#include <string_view>

namespace qpn8 {

/// Whether the pattern, in which a `*` stands for any run of characters, covers the whole role.
bool role_matches(std::string_view pattern, std::string_view role);

}  // namespace qpn8
