#include "text/byte_codes.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/utf8.hpp"

namespace qpn8::text {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;
constexpr std::size_t kSubstitutes = 68;  // the bytes that are not printable Latin-1

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<char32_t, 256> code_point = {};
  std::array<std::uint8_t, kSubstitutes> byte = {};  // of kFirstSubstitute + i
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  std::size_t substitutes = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (stands_for_itself(byte)) {
      alphabet.code_point[byte] = byte;
    } else {
      alphabet.code_point[byte] = kFirstSubstitute + static_cast<char32_t>(substitutes);
      alphabet.byte[substitutes++] = static_cast<std::uint8_t>(byte);
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

std::optional<std::uint8_t> byte_of(char32_t value) {
  if (value < 256 && stands_for_itself(value)) return static_cast<std::uint8_t>(value);
  if (value >= kFirstSubstitute && value < kFirstSubstitute + kSubstitutes) {
    return kAlphabet.byte[value - kFirstSubstitute];
  }
  return std::nullopt;
}

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) append_code_point(out, kAlphabet.code_point[static_cast<unsigned char>(byte)]);
}

std::optional<std::string> byte_level_bytes(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (std::size_t at = 0; at < token.size();) {
    const CodePoint point = code_point_at(token, at);
    const std::optional<std::uint8_t> byte = byte_of(point.value);
    if (!byte) return std::nullopt;
    bytes.push_back(static_cast<char>(*byte));
    at += point.size;
  }
  return bytes;
}

std::optional<std::uint8_t> byte_token_value(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  std::uint8_t byte = 0;
  const char* const end = token.data() + 5;
  const std::from_chars_result result = std::from_chars(token.data() + 3, end, byte, 16);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return byte;
}

std::string byte_token(std::uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

}  // namespace qpn8::text
