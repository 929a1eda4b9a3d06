#include "checkpoint/synthetic_values.hpp"

#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "qpn8/half.hpp"

namespace qpn8 {
namespace {

/// The output function of SplitMix64: a bijection of 64 bits whose outputs at a counter's steps pass for random.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

constexpr std::uint64_t kCounterStep = 0x9e3779b97f4a7c15U;

/// FNV-1a.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return value;
}

/// Deviation of the sum of four uniform 16-bit integers: each has variance (2^32 - 1) / 12.
double sum_deviation() { return std::sqrt(4.0 * (0x1p32 - 1) / 12.0); }

}  // namespace

SyntheticValues::SyntheticValues(std::uint64_t seed, std::string_view name, DType dtype, double mean, double deviation)
    : stream_(mix(mix(seed + kCounterStep) ^ hash(name))),
      dtype_(dtype),
      mean_(static_cast<float>(mean)),
      step_(static_cast<float>(deviation / sum_deviation())) {
  check(dtype == DType::f16 || dtype == DType::bf16, "synthetic values are 16 bit");
}

std::uint16_t SyntheticValues::bits(std::int64_t index) const {
  const std::uint64_t random = mix(stream_ + static_cast<std::uint64_t>(index) * kCounterStep);
  const std::uint64_t sum = (random & 0xffffU) + (random >> 16 & 0xffffU) + (random >> 32 & 0xffffU) + (random >> 48);
  const float centred = static_cast<float>(static_cast<std::int32_t>(sum) - 2 * 0xffff);
  const float value = mean_ + centred * step_;
  return dtype_ == DType::f16 ? to_half(value).bits : to_bfloat16(value).bits;
}

void SyntheticValues::fill(std::int64_t first, std::span<std::byte> out) const {
  const std::size_t count = out.size() / sizeof(std::uint16_t);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t stored = bits(first + static_cast<std::int64_t>(i));
    std::memcpy(out.data() + i * sizeof(stored), &stored, sizeof(stored));
  }
}

}  // namespace qpn8
