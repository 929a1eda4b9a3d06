#pragma once

#include <filesystem>
#include <string>

namespace qpn8 {

/// An open file, closed at the end of its owner's life. Move-only.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }

  /// Closes it now; false, with errno set, if that reports a write that failed.
  bool close();

 private:
  int fd_ = -1;
};

/// Throws Error::bad_file "PATH: WHAT".
[[noreturn]] void fail_file(const std::filesystem::path& path, const std::string& what);

/// Opens a file with the flags of open(2), which must be a regular one. A folder, a FIFO or a device in its place is
/// Error::bad_file "PATH: is not a regular file", at once: nothing waits for the other end of a FIFO. Every other fault
/// is Error::bad_file naming the path.
FileDescriptor open_regular_file(const std::filesystem::path& path, int flags);

/// The bytes of a file that must be a regular one, with the same errors.
std::string read_file(const std::filesystem::path& path);

}  // namespace qpn8
