#pragma once

#include <filesystem>

namespace qpn8 {

/// Keeps a folder to one process (and one object of it) at a time, by a lock on the folder itself: no file is made. The
/// system drops the lock with the process, however that ends. On a network file system it holds among the processes of
/// one machine.
class FolderLock {
 public:
  /// Error::bad_argument if another holds the folder, Error::bad_file if it is none or cannot be written into; both
  /// name it.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace qpn8
