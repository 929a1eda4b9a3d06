#include "checkpoint/synthetic_values.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/random.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/half.hpp"

namespace qpn8 {
namespace {

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
    : stream_(Random(Random(seed).next() ^ hash(name)).next()),
      dtype_(dtype),
      mean_(static_cast<float>(mean)),
      step_(static_cast<float>(deviation / sum_deviation())) {
  check(dtype != DType::i64 && dtype != DType::i32 && dtype != DType::u8, "synthetic values are of a floating type");
}

std::uint32_t SyntheticValues::stored(std::uint64_t random) const {
  const std::uint64_t sum = (random & 0xffffU) + (random >> 16 & 0xffffU) + (random >> 32 & 0xffffU) + (random >> 48);
  const auto centred = static_cast<float>(static_cast<std::int32_t>(sum) - 2 * 0xffff);
  const float value = mean_ + centred * step_;
  switch (dtype_) {
    case DType::f32:
      return std::bit_cast<std::uint32_t>(value);
    case DType::f16:
      return to_half(value).bits;
    case DType::f8_e4m3:
      return encode_e4m3(value);
    case DType::f8_e8m0:
      return static_cast<std::uint32_t>(std::lround(value));
    default:
      return to_bfloat16(value).bits;
  }
}

void SyntheticValues::fill(std::int64_t first, std::span<std::byte> out) const {
  Random random(stream_);
  random.skip(static_cast<std::uint64_t>(first));
  const std::size_t width = size_of(dtype_);
  for (std::size_t at = 0; at < out.size(); at += width) {
    // The low bytes of a little-endian machine's integer are the element.
    const std::uint32_t bits = stored(random.next());
    std::memcpy(out.data() + at, &bits, width);
  }
}

}  // namespace qpn8
