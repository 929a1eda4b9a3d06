#include "checkpoint/ngram_tables.hpp"

#include <algorithm>
#include <limits>

#include "base/random.hpp"

namespace qpn8 {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

bool is_prime(std::int64_t number) {
  if (number < 2) return false;
  for (std::int64_t factor = 2; factor * factor <= number; ++factor) {
    if (number % factor == 0) return false;
  }
  return true;
}

/// The primes number first, first + 1, ... of those that are at least `least`.
std::vector<std::int64_t> primes(std::int64_t least, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> found;
  for (std::int64_t number = least; static_cast<std::int64_t>(found.size()) < count; ++number) {
    if (is_prime(number) && first-- <= 0) found.push_back(number);
  }
  return found;
}

/// Odd, and so small that a product with a token id stays below 2^63.
std::vector<std::int64_t> multipliers(std::uint64_t base, std::int64_t vocabulary, std::int64_t count) {
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max() / vocabulary;
  const auto half = static_cast<std::uint64_t>(std::max<std::int64_t>(1, largest / 2));
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t mixed = Random(base + kGolden * static_cast<std::uint64_t>(i + 1)).next();
    result.push_back(static_cast<std::int64_t>(2 * (mixed % half) + 1));
  }
  return result;
}

}  // namespace

NgramTables ngram_tables(const ModelConfig& config, std::int64_t rank) {
  const std::int64_t orders = config.integer_or("ngram_size", 3, 2);
  const std::int64_t heads = (orders - 1) * config.integer_or("heads_per_ngram", 8, 1);
  const std::int64_t multiple = config.integer_or("make_ngram_vocab_size_divisible_by", 128, 1);
  constexpr std::int64_t kSeedStep = 10007;
  const std::int64_t seed = config.integer_or("seed", 1234, 0) + kSeedStep * rank;

  NgramTables tables;
  tables.multipliers = multipliers(static_cast<std::uint64_t>(seed), config.vocab_size, orders);
  tables.sizes = primes(config.integer_or("ngram_vocab_size_base", 20'000'000, 2), rank * heads, heads);
  for (const std::int64_t size : tables.sizes) {
    tables.offsets.push_back(tables.rows);
    tables.rows += size;
  }
  tables.rows = (tables.rows + multiple - 1) / multiple * multiple;
  return tables;
}

}  // namespace qpn8
