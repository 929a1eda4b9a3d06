#include "base/utf8.hpp"

#include <utility>

namespace qpn8 {
namespace {

constexpr bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

Utf8Sequence first_sequence(std::string_view bytes) {
  using Kind = Utf8Sequence::Kind;
  const auto lead = static_cast<unsigned char>(bytes[0]);
  if (lead < 0x80) return {Kind::complete, 1};
  std::size_t size = 0;
  // Bounds of the second byte: narrower where a wider one would encode an overlong form, a surrogate or something
  // beyond U+10FFFF.
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {Kind::ill_formed, 1};
  }
  for (std::size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {Kind::incomplete, i};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte < low || byte > high) return {Kind::ill_formed, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Kind::complete, size};
}

bool is_well_formed(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Sequence sequence = first_sequence(bytes);
    if (sequence.kind != Utf8Sequence::Kind::complete) return false;
    bytes.remove_prefix(sequence.size);
  }
  return true;
}

std::string to_well_formed(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  Utf8Assembler assembler;
  assembler.push(bytes, out);
  assembler.finish(out);
  return out;
}

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

CodePoint code_point_before(std::string_view text, std::size_t at) {
  std::size_t begin = at - 1;
  while (is_continuation(text[begin])) --begin;
  return code_point_at(text, begin);
}

void append_code_point(std::string& text, char32_t value) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

void Utf8Assembler::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!pending_.empty()) {
    joined = std::exchange(pending_, {}).append(bytes);
    bytes = joined;
  }
  while (!bytes.empty()) {
    const Utf8Sequence sequence = first_sequence(bytes);
    if (sequence.kind == Utf8Sequence::Kind::incomplete) {
      pending_ = bytes;
      return;
    }
    const bool complete = sequence.kind == Utf8Sequence::Kind::complete;
    out += complete ? bytes.substr(0, sequence.size) : kReplacementCharacter;
    bytes.remove_prefix(sequence.size);
  }
}

void Utf8Assembler::finish(std::string& out) {
  if (!std::exchange(pending_, {}).empty()) out += kReplacementCharacter;
}

}  // namespace qpn8
