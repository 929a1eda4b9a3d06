#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "backend/tensor.hpp"
#include "base/buffer.hpp"

namespace qpn8::cpu {

/// The product of sizes, as a number of bytes. Error::missing_capability naming `what` if it does not fit 63 bits:
/// no machine has that much.
std::int64_t size_product(std::initializer_list<std::int64_t> factors, std::string_view what);

/// Zeroed memory. Error::missing_capability naming `what` and the size if the system has no room.
Buffer allocate_buffer(std::int64_t bytes, std::string_view what, Buffer::Pages pages = Buffer::Pages::huge);

/// A buffer as device memory.
class HostMemory : public DeviceMemory {
 public:
  explicit HostMemory(Buffer buffer) : buffer_(std::move(buffer)) {}
  std::byte* data() { return buffer_.data(); }

 private:
  Buffer buffer_;
};

/// A matrix of floats that is kept between calls and grows when a call needs more than all before it.
class Scratch {
 public:
  /// Valid until the next call; its content is unspecified.
  MatrixView<float> matrix(std::int64_t rows, std::int64_t cols);

 private:
  Buffer buffer_;
};

}  // namespace qpn8::cpu
