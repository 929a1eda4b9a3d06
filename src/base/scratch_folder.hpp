#pragma once

#include <filesystem>

namespace qpn8 {

/// A folder of its own in the system's place for temporary files, removed with what is in it.
class ScratchFolder {
 public:
  /// Error::bad_file if it cannot be made.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace qpn8
