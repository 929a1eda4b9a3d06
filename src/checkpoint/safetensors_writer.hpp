#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/dtype.hpp"

namespace qpn8 {

/// A tensor without its bytes.
struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
  std::size_t bytes() const;
};

/// Writes one safetensors file piece by piece, so that no more than a piece need be in memory, under a temporary name
/// that finish() turns into the real one; without it nothing remains. Error::bad_file if the file cannot be written.
class SafetensorsStream {
 public:
  /// Writes the header. Larger element types come first, then by name, so that every tensor is aligned.
  SafetensorsStream(const std::filesystem::path& path, std::vector<TensorSpec> tensors);

  /// In file order: the order in which append() takes their bytes.
  const std::vector<TensorSpec>& tensors() const { return tensors_; }

  void append(std::span<const std::byte> bytes);

  /// Every byte of every tensor must have been appended.
  void finish();

 private:
  AtomicFile file_;
  std::vector<TensorSpec> tensors_;
  std::size_t left_ = 0;
};

/// A tensor to be written. `bytes` holds the product of `shape` elements of `dtype`.
struct TensorToWrite {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes one safetensors file under a temporary name and renames it when it is complete.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors);

}  // namespace qpn8
