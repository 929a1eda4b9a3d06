#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace qpn8 {

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): a small generator whose
/// sequence is fixed by its seed on every platform and library, which std::shuffle and the standard distributions do
/// not promise. Neighbouring seeds give unrelated sequences.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    skip(1);
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  /// As many calls of next(), at the cost of one: any part of a sequence can be made apart from the rest.
  void skip(std::uint64_t count) { state_ += count * 0x9e3779b97f4a7c15U; }

  /// Uniform in [0, bound), bound > 0. Values that would favour small results are drawn again.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t refused = (0 - bound) % bound;
    std::uint64_t value = next();
    while (value < refused) value = next();
    return value % bound;
  }

 private:
  std::uint64_t state_;
};

/// Fisher and Yates.
template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(i))]);
  }
}

}  // namespace qpn8
