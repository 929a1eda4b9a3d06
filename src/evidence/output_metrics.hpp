#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace qpn8 {

// What an output looks like apart from being right: signs of a decoder that has gone wrong. Tokens are ids; where a
// server gives none, any numbering of its pieces serves, since only equality counts (token_hash apart).

/// 1 - distinct / total over the 4-grams of the tokens; 0 for fewer than 4 tokens. In [0, 1).
double repeated_4gram_rate(std::span<const std::int32_t> tokens);

/// Occurrences of U+FFFD and of NUL in UTF-8 text.
std::int64_t count_replacement_chars(std::string_view text);
std::int64_t count_nul_chars(std::string_view text);

/// SHA-256, as lower-case hex, of the decimal ids joined by commas; of the empty text for no ids.
std::string token_hash(std::span<const std::int32_t> ids);

/// SHA-256 of any bytes, as lower-case hex.
std::string sha256_hex(std::string_view bytes);

/// The first position where the two differ, one that only the longer has included; nothing if they are equal.
std::optional<std::int64_t> first_divergence(std::span<const std::int32_t> left, std::span<const std::int32_t> right);

}  // namespace qpn8
