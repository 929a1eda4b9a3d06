#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace qpn8::test {

/// The bytes of a safetensors file with this header, as it is, and this data part.
inline std::string safetensors(std::string_view header, std::string_view data) {
  std::string file;
  for (int shift = 0; shift < 64; shift += 8) {
    file += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> shift & 0xffU);
  }
  return file.append(header).append(data);
}

/// The same with `bytes` zero bytes of data.
inline std::string safetensors(std::string_view header, std::size_t bytes) {
  return safetensors(header, std::string(bytes, '\0'));
}

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace qpn8::test
