#pragma once

#include <filesystem>
#include <system_error>

namespace qpn8 {

/// Whether something of this name is there, for files that may be left out. A link to nowhere and what cannot be looked
/// at count: reading them then fails and names them, whereas std::filesystem::exists makes the one look absent and
/// throws at the other.
inline bool entry_exists(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
}

}  // namespace qpn8
