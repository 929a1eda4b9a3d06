#pragma once

#include <filesystem>

namespace qpn8 {

/// Keeps a folder to one process (and one object of it) at a time, by a lock on the file `lock` in it, which stays
/// behind empty. The system drops the lock with the process, however that ends.
class FolderLock {
 public:
  /// Error::bad_argument if another holds the folder, Error::bad_file if the file system refuses; both name the folder
  /// or the file.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace qpn8
