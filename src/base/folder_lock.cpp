#include "base/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "qpn8/error.hpp"

namespace qpn8 {

FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "lock";
  // O_NONBLOCK: a FIFO of that name must not wait for a reader.
  descriptor_ = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  if (descriptor_ >= 0) close(descriptor_);
  if (error == EWOULDBLOCK) {
    throw Error(Error::bad_argument,
                folder.string() + ": another run is writing there; wait for its end, or choose another folder");
  }
  throw Error(Error::bad_file, file.string() + ": cannot be locked (" + std::generic_category().message(error) + ")");
}

// The file stays: a process that removed it could take it from under one that has just opened it.
FolderLock::~FolderLock() { close(descriptor_); }

}  // namespace qpn8
