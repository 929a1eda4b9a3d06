#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace qpn8 {

/// Element types of checkpoints and of tensors on a device; the names are those of the safetensors format.
enum class DType : std::uint8_t { f32, f16, bf16, f8_e4m3, f8_e8m0, i64, i32, u8, i8 };

std::size_t size_of(DType type);
std::string_view to_string(DType type);

/// "F32" -> DType::f32; nothing for a name that is not supported.
std::optional<DType> parse_dtype(std::string_view name);

}  // namespace qpn8
