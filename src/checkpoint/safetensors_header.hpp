#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace qpn8 {

/// A tensor as a safetensors header describes it, already checked against the file.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;  ///< position in the file, not in its data part
  std::size_t end = 0;
};

/// Reads the header of a safetensors file that lies in memory (or in a map: only the header's pages are touched).
///
/// Checks everything that makes the entries safe to use: the header is JSON of the published form and at most 100 MB
/// (the format's own limit), dtypes are known, shapes have at most 8 dimensions and products that fit, each tensor's
/// bytes are what its dtype and shape need, begin at a multiple of the element size and lie in the file, and the
/// tensors cover the data part without overlap, hole or rest.
///
/// name     stands first in messages.
/// returns  the entries in file order.
/// Throws Error::bad_file, or Error::unsupported for a dtype, naming the tensor. Memory: a small multiple of the
/// header.
std::vector<SafetensorsEntry> parse_safetensors_header(std::span<const std::byte> file, const std::string& name);

}  // namespace qpn8
