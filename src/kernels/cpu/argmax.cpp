#include "kernels/cpu/argmax.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace qpn8::cpu {
namespace {

// Integers in the order of the floats they stand for; -0 and 0 are the same.
std::int32_t ordered_bits(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value + 0.0F);
  return bits ^ ((bits >> 31) & std::numeric_limits<std::int32_t>::max());
}

}  // namespace

std::optional<std::size_t> argmax(std::span<const float> values) {
  constexpr std::int32_t kExponent = 0x7f800000;
  std::int32_t best = std::numeric_limits<std::int32_t>::min();
  std::int32_t non_finite = 0;
  for (const float value : values) {
    best = std::max(best, ordered_bits(value));
    non_finite |= static_cast<std::int32_t>((std::bit_cast<std::int32_t>(value) & kExponent) == kExponent);
  }
  if (non_finite != 0 || values.empty()) return std::nullopt;
  const auto found = std::find_if(values.begin(), values.end(), [&](float v) { return ordered_bits(v) == best; });
  return static_cast<std::size_t>(found - values.begin());
}

}  // namespace qpn8::cpu
