#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "qpn8/error.hpp"

namespace qpn8 {

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path), partial_(path) {
  partial_ += ".partial";
  file_ = open_regular_file(partial_, O_WRONLY | O_CREAT | O_TRUNC);
}

AtomicFile::~AtomicFile() {
  if (file_.is_open()) unlink(partial_.c_str());
}

void AtomicFile::fail() const {
  throw Error(Error::bad_file, path_.string() + ": " + std::generic_category().message(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  // The error of a delayed write (a full quota, a network file system) is close()'s to report.
  if (!file_.close() || rename(partial_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(partial_.c_str());
    errno = error;
    fail();
  }
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace qpn8
