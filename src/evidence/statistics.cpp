#include "evidence/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "base/random.hpp"

namespace qpn8 {
namespace {

// Quantiles of the normal distribution: two-sided 5 %, and a power of 80 %.
constexpr double kTwoSided = 1.959963984540054;
constexpr double kPower = 0.8416212335729143;

/// Wilson's score interval of a rate.
Interval wilson(double successes, double items) {
  const double rate = successes / items;
  const double z2 = kTwoSided * kTwoSided / items;
  const double centre = rate + z2 / 2;
  const double half = kTwoSided * std::sqrt(rate * (1 - rate) / items + z2 / (4 * items));
  return {(centre - half) / (1 + z2), (centre + half) / (1 + z2)};
}

/// Correlation of the outcomes, shrunk towards 0 where it is positive, as method 10 asks.
double corrected_phi(double both, double only_a, double only_b, double neither) {
  const double scale =
      std::sqrt((both + only_a) * (only_b + neither)) * std::sqrt((both + only_b) * (only_a + neither));
  if (scale == 0) return 0.0;
  const double determinant = both * neither - only_a * only_b;
  const double items = both + only_a + only_b + neither;
  return (determinant < 0 ? determinant : std::max(determinant - items / 2, 0.0)) / scale;
}

/// Distance of a limit of the difference from its estimate, from the distances of the two rates' limits.
double joined(double first, double second, double phi) {
  return std::sqrt(std::max(first * first - 2 * phi * first * second + second * second, 0.0));
}

}  // namespace

double percentile(std::span<const double> sorted, double percent) {
  check(!sorted.empty() && percent >= 0 && percent <= 100, "a percentile of something");
  const double position = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double fraction = position - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

double mean(std::span<const double> values) {
  if (values.empty()) return 0.0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

Distribution describe(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {mean(values), percentile(values, 50), percentile(values, 10), percentile(values, 90)};
}

void PairedCounts::add(bool a, bool b) {
  if (a && b) ++both;
  if (a && !b) ++only_a;
  if (!a && b) ++only_b;
  if (!a && !b) ++neither;
}

double PairedCounts::difference() const {
  if (total() == 0) return 0.0;
  return static_cast<double>(only_b - only_a) / static_cast<double>(total());
}

double mcnemar_exact(std::int64_t only_a, std::int64_t only_b) {
  const std::int64_t pairs = only_a + only_b;
  const std::int64_t fewer = std::min(only_a, only_b);
  const auto n = static_cast<double>(pairs);
  // Terms binomial(n, k) / 2^n by logarithms: 2^-n alone is 0 in a double from n = 1075 on.
  double tail = 0.0;
  for (std::int64_t k = 0; k <= fewer; ++k) {
    const auto x = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) - n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

Interval newcombe_paired(const PairedCounts& counts) {
  if (counts.total() == 0) return {-1.0, 1.0};
  const auto both = static_cast<double>(counts.both);
  const auto only_a = static_cast<double>(counts.only_a);
  const auto only_b = static_cast<double>(counts.only_b);
  const auto neither = static_cast<double>(counts.neither);
  const auto items = static_cast<double>(counts.total());
  const double rate_a = (both + only_a) / items;
  const double rate_b = (both + only_b) / items;
  const Interval a = wilson(both + only_a, items);
  const Interval b = wilson(both + only_b, items);
  const double phi = corrected_phi(both, only_a, only_b, neither);
  return {(rate_b - rate_a) - joined(rate_b - b.low, a.high - rate_a, phi),
          (rate_b - rate_a) + joined(b.high - rate_b, rate_a - a.low, phi)};
}

double detectable_difference(std::int64_t items, std::int64_t discordant) {
  check(items > 0, "a difference between some items");
  const auto n = static_cast<double>(items);
  const double observed = static_cast<double>(discordant) / n;
  const auto too_small = [&](double difference) {
    const double rate = std::max(observed, difference);
    const double spread = kTwoSided * std::sqrt(rate) + kPower * std::sqrt(rate - difference * difference);
    return difference * std::sqrt(n) < spread;
  };
  if (too_small(1.0)) return 1.0;
  double low = 0.0;
  double high = 1.0;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (too_small(middle) ? low : high) = middle;
  }
  return high;
}

Interval bootstrap_interval(std::size_t items, const BootstrapOptions& options,
                            const std::function<double(std::span<const std::size_t>)>& statistic) {
  check(items > 0 && options.resamples > 0, "a bootstrap of something");
  Random random(options.seed);
  std::vector<std::size_t> drawn(items);
  std::vector<double> values(static_cast<std::size_t>(options.resamples));
  for (double& value : values) {
    for (std::size_t& position : drawn) position = static_cast<std::size_t>(random.below(items));
    value = statistic(drawn);
  }
  std::sort(values.begin(), values.end());
  return {percentile(values, 2.5), percentile(values, 97.5)};
}

}  // namespace qpn8
