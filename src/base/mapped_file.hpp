#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace qpn8 {

/// A file mapped read-only. Move-only; the mapping lives as long as the object.
class MappedFile {
 public:
  /// Error::bad_file naming the path if it is missing, not a regular file or cannot be mapped. An empty file maps to an
  /// empty span.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

  /// Tells the system that the pages wholly inside this part of bytes() are not needed for now, so that they stop
  /// counting as resident; reading them again works and costs a page fault.
  void release(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace qpn8
