#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The two ways in which tokens spell bytes.

namespace qpn8::text {

/// Byte-level alphabet: each byte as one printable code point; printable Latin-1 stands for itself, the other bytes
/// count up from U+0100.
void append_byte_level(std::string& out, std::string_view bytes);

/// The bytes that a token of the byte-level alphabet spells; nothing if it has a character outside of it.
std::optional<std::string> byte_level_bytes(std::string_view token);

/// The byte of a fallback token: "<0x0A>" is 10.
std::optional<std::uint8_t> byte_token_value(std::string_view token);

/// The inverse, with upper-case digits.
std::string byte_token(std::uint8_t byte);

}  // namespace qpn8::text
