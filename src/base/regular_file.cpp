#include "base/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/mapped_file.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

[[noreturn]] void fail_system(const std::filesystem::path& path, int error) {
  // What opening a folder or the unread end of a FIFO for writing is answered with.
  if (error == EISDIR || error == ENXIO) fail_file(path, "is not a regular file");
  fail_file(path, std::generic_category().message(error));
}

}  // namespace

void fail_file(const std::filesystem::path& path, const std::string& what) {
  throw Error(Error::bad_file, path.string() + ": " + what);
}

FileDescriptor::~FileDescriptor() {
  if (is_open()) close();
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

bool FileDescriptor::close() { return ::close(std::exchange(fd_, -1)) == 0; }

FileDescriptor open_regular_file(const std::filesystem::path& path, int flags) {
  constexpr mode_t kMode = 0666;  // of a new file, less the process's umask
  FileDescriptor file(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMode));
  if (!file.is_open()) fail_system(path, errno);
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) fail_system(path, errno);
  if (!S_ISREG(status.st_mode)) fail_file(path, "is not a regular file");
  return file;
}

std::string read_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return std::string(file.text());
}

}  // namespace qpn8
