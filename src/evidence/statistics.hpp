#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace qpn8 {

struct Interval {
  double low = 0.0;
  double high = 0.0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// --- of one sample --------------------------------------------------------------------------------------------------

/// The value below which `percent` (0 to 100) of the values lie, interpolated linearly between order statistics.
/// `sorted` is ascending and not empty.
double percentile(std::span<const double> sorted, double percent);

/// Mean, median and the outer deciles of a sample; all 0 for an empty one.
struct Distribution {
  double mean = 0.0;
  double median = 0.0;
  double p10 = 0.0;
  double p90 = 0.0;
};

double mean(std::span<const double> values);
double median(std::vector<double> values);
Distribution describe(std::vector<double> values);

// --- of paired yes/no outcomes --------------------------------------------------------------------------------------

/// Outcomes of the same items under A and B, counted.
struct PairedCounts {
  std::int64_t both = 0;
  std::int64_t only_a = 0;
  std::int64_t only_b = 0;
  std::int64_t neither = 0;

  void add(bool a, bool b);
  std::int64_t total() const { return both + only_a + only_b + neither; }
  std::int64_t discordant() const { return only_a + only_b; }
  /// Rate of B minus rate of A; 0 for no items.
  double difference() const;
};

/// Exact two-sided McNemar test: the chance that fair coins split the discordant pairs at least as unevenly.
/// 1 if there are none. Symmetric in its arguments.
double mcnemar_exact(std::int64_t only_a, std::int64_t only_b);

/// Newcombe's 95 % interval for the difference of two paired rates, B minus A (method 10 of Newcombe 1998: Wilson
/// intervals of both rates, joined with a corrected phi coefficient). Sensible where no pair is discordant, which a
/// bootstrap is not. [-1, 1] for no items.
Interval newcombe_paired(const PairedCounts& counts);

/// The smallest true difference that an exact-size McNemar test at 5 % finds with a probability of 80 %, if
/// `discordant` of `items` pairs differ (Connor 1987). A difference needs at least as many discordant pairs as it is
/// large, so fewer observed ones do not make it smaller. 1 if the items can show none; items > 0.
double detectable_difference(std::int64_t items, std::int64_t discordant);

// --- resampling -----------------------------------------------------------------------------------------------------

struct BootstrapOptions {
  int resamples = 10000;
  std::uint64_t seed = 20240607;  ///< any; fixed, so that the same outputs give the same report
};

/// 95 % percentile-bootstrap interval of a statistic over items: `statistic` gets the positions of the drawn items,
/// with repetition, `items` of them. Resampling items (not outputs) keeps what belongs to an item together: both arms,
/// and the same question under several seeds. items > 0. Deterministic.
Interval bootstrap_interval(std::size_t items, const BootstrapOptions& options,
                            const std::function<double(std::span<const std::size_t>)>& statistic);

}  // namespace qpn8
