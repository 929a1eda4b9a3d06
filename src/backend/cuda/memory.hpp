#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "backend/tensor.hpp"
#include "kernels/cuda/stream.hpp"

namespace qpn8::cuda {

/// Memory of the GPU; move-only.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Error::missing_capability naming `what`, the size and what is free if the GPU has no room.
  DeviceBuffer(std::size_t bytes, std::string_view what);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

  /// Zeroes all bytes.
  void clear() const;

  /// Copies host bytes to the beginning and waits; for weights, which nothing is reading yet.
  void fill(std::span<const std::byte> source) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

class BufferMemory : public DeviceMemory {
 public:
  explicit BufferMemory(DeviceBuffer buffer) : buffer_(std::move(buffer)) {}

 private:
  DeviceBuffer buffer_;
};

/// Host memory that the GPU reads and writes by itself, through which small transfers go without waiting.
class TransferBuffer {
 public:
  explicit TransferBuffer(const Stream& stream);
  ~TransferBuffer();
  TransferBuffer(const TransferBuffer&) = delete;
  TransferBuffer& operator=(const TransferBuffer&) = delete;

  /// Queues a copy of `rows` pieces of `width` bytes; the source may be changed at once.
  void write(std::byte* target, std::size_t target_pitch, const std::byte* source, std::size_t width, std::size_t rows);

  /// Copies to the host and waits for it, and so for everything queued before.
  void read(std::byte* target, const std::byte* source, std::size_t source_pitch, std::size_t width, std::size_t rows);

 private:
  Stream stream_;
  std::byte* staging_ = nullptr;
  std::size_t used_ = 0;  // by copies that may still be running
};

}  // namespace qpn8::cuda
