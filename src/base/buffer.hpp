#pragma once

#include <cstddef>
#include <span>

namespace qpn8 {

/// Anonymous memory, 64-byte aligned, zeroed. Move-only.
class Buffer {
 public:
  enum class Pages {
    /// Where the memory is large enough and the system grants them: a decode step reads every weight once, and would
    /// otherwise miss the TLB every 4 KiB.
    huge,
    /// For memory that fills up little by little in many places, or perhaps never: the first touch of each place would
    /// cost a whole huge page.
    small,
  };

  Buffer() = default;
  /// std::bad_alloc if the system has no such memory.
  explicit Buffer(std::size_t bytes, Pages pages = Pages::huge);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {data_, size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace qpn8
