#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/regular_file.hpp"

namespace qpn8 {

/// A file that appears under its name only when it is complete: it is written beside it as NAME.partial and renamed by
/// commit(). Without a commit the partial file is removed. Every fault is Error::bad_file naming the file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Closes the file and gives it its name, replacing what had it. Nothing can be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  FileDescriptor file_;
};

/// A whole text file, the same way.
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace qpn8
