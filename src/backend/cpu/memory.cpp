#include "backend/cpu/memory.hpp"

#include <fmt/format.h>

#include <new>

#include "qpn8/error.hpp"

namespace qpn8::cpu {

std::int64_t size_product(std::initializer_list<std::int64_t> factors, std::string_view what) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      throw Error(Error::missing_capability,
                  fmt::format("{}: more than 2^63 bytes are needed; no machine has them", what));
    }
  }
  return product;
}

Buffer allocate_buffer(std::int64_t bytes, std::string_view what, Buffer::Pages pages) {
  try {
    return Buffer(static_cast<std::size_t>(bytes), pages);
  } catch (const std::bad_alloc&) {
    throw Error(Error::missing_capability,
                fmt::format("{}: {} bytes ({:.1f} GiB) of memory are needed, more than the system gives", what, bytes,
                            static_cast<double>(bytes) / (1 << 30)));
  }
}

MatrixView<float> Scratch::matrix(std::int64_t rows, std::int64_t cols) {
  const std::int64_t bytes = size_product({rows, cols, sizeof(float)}, "scratch memory");
  if (static_cast<std::int64_t>(buffer_.size()) < bytes) buffer_ = allocate_buffer(bytes, "scratch memory");
  return {reinterpret_cast<float*>(buffer_.data()), rows, cols};
}

}  // namespace qpn8::cpu
