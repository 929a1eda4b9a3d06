#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/dtype.hpp"

namespace qpn8 {

/// The values of one synthetic tensor: bell-shaped around `mean`, no further from it than 3.46 deviations. Element i
/// is a function of (seed, name, i) in integer arithmetic and two roundings, so that any part can be made anywhere, by
/// any thread on any machine, with the same bits.
class SyntheticValues {
 public:
  /// dtype f32, f16, bf16, f8_e4m3 (the nearest codes, none of them NaN) or f8_e8m0 (values are exponents with their
  /// bias, rounded).
  SyntheticValues(std::uint64_t seed, std::string_view name, DType dtype, double mean, double deviation);

  /// Writes elements first, first + 1, ... to `out`, whose size is a multiple of the element's. Thread-safe.
  void fill(std::int64_t first, std::span<std::byte> out) const;

 private:
  std::uint32_t stored(std::uint64_t random) const;

  std::uint64_t stream_;
  DType dtype_;
  float mean_;
  float step_;
};

}  // namespace qpn8
