#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/dtype.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8 {

/// A strided matrix in a device's memory; does not own it. Everything a decoder computes is a matrix of token rows.
struct Tensor {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< elements between rows, at least cols
  std::byte* data = nullptr;

  Tensor row_range(std::int64_t first, std::int64_t count) const {
    return {dtype, count, cols, stride, data + first * stride * static_cast<std::int64_t>(size_of(dtype))};
  }
  Tensor col_range(std::int64_t first, std::int64_t count) const {
    return {dtype, rows, count, stride, data + first * static_cast<std::int64_t>(size_of(dtype))};
  }

  /// The tensor as a host matrix; only where the device's memory is the host's. T must be the type behind dtype.
  template <class T>
  MatrixView<T> host() const {
    return {reinterpret_cast<T*>(data), rows, cols, stride};
  }
};

/// Device memory, freed by its destructor.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
};

/// A tensor with its memory.
struct OwnedTensor {
  Tensor tensor;
  std::unique_ptr<DeviceMemory> memory;
};

}  // namespace qpn8
