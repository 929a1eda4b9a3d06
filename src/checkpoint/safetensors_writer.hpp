#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace qpn8 {

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
