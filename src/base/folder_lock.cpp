#include "base/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "qpn8/error.hpp"

namespace qpn8 {

// The folder itself is locked, so that nothing is left behind, however the process ends. The lock needs no right to
// write; who holds a folder to write into it is told of a missing one here, before hours of work.
FolderLock::FolderLock(const std::filesystem::path& folder) {
  descriptor_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ >= 0 && access(folder.c_str(), W_OK | X_OK) == 0 && flock(descriptor_, LOCK_EX | LOCK_NB) == 0)
    return;
  const int error = errno;
  if (descriptor_ >= 0) close(descriptor_);
  if (error == EWOULDBLOCK) {
    throw Error(Error::bad_argument,
                folder.string() + ": another run is writing there; wait for its end, or choose another folder");
  }
  throw Error(Error::bad_file, folder.string() + ": cannot be written into (" + std::generic_category().message(error) +
                                   "); expected a folder that can be");
}

FolderLock::~FolderLock() { close(descriptor_); }

}  // namespace qpn8
