#include "evidence/statistics.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace qpn8 {
namespace {

// Expected values come from SciPy 1.17.1, statsmodels 0.15.0 and NumPy 2.4.6, or from a publication, as said at each.

TEST(McNemarExact, EqualsStatsmodelsAndTheBinomialTest) {
  // statsmodels.stats.contingency_tables.mcnemar(exact=True), equal to scipy.stats.binomtest(min, b + c, 0.5)
  struct Case {
    std::int64_t only_a, only_b;
    double p;
  };
  for (const auto& [only_a, only_b, p] : {Case{0, 0, 1.0},
                                          {1, 0, 1.0},
                                          {0, 6, 0.03125},
                                          {5, 5, 1.0},
                                          {7, 8, 1.0},
                                          {3, 9, 0.14599609375},
                                          {12, 30, 0.007915897334896727},
                                          {100, 140, 0.01166409231767769},
                                          {2000, 2200, 0.0021323556719912455}}) {
    EXPECT_NEAR(mcnemar_exact(only_a, only_b), p, 1e-10) << only_a << " " << only_b;
    EXPECT_EQ(mcnemar_exact(only_a, only_b), mcnemar_exact(only_b, only_a));
  }
}

TEST(Percentile, InterpolatesLinearlyAsNumpyDoes) {
  // numpy.percentile([3, 1, 4, 1, 5, 9, 2, 6], q)
  const std::vector<double> sorted = {1, 1, 2, 3, 4, 5, 6, 9};
  EXPECT_EQ(percentile(sorted, 0), 1.0);
  EXPECT_EQ(percentile(sorted, 10), 1.0);
  EXPECT_EQ(percentile(sorted, 50), 3.5);
  EXPECT_NEAR(percentile(sorted, 90), 6.9, 1e-12);
  EXPECT_NEAR(percentile(sorted, 95), 7.95, 1e-12);
  EXPECT_EQ(percentile(sorted, 100), 9.0);
  EXPECT_EQ(percentile(std::vector<double>{7.0}, 90), 7.0);
}

TEST(Describe, GivesMeanMedianAndDecilesOfUnsortedValues) {
  const Distribution distribution = describe({3, 1, 4, 1, 5, 9, 2, 6});
  EXPECT_EQ(distribution.mean, 3.875);
  EXPECT_EQ(distribution.median, 3.5);
  EXPECT_EQ(distribution.p10, 1.0);
  EXPECT_NEAR(distribution.p90, 6.9, 1e-12);
  EXPECT_EQ(describe({}).mean, 0.0);
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({5, 1, 3, 4}), 3.5);
  EXPECT_EQ(median({2}), 2);
  EXPECT_EQ(median({}), 0);
}

TEST(NewcombePaired, EqualsThePublishedExamples) {
  // Newcombe 1998, Statistics in Medicine 17:2635, method 10 for (36, 12, 2, 0): 0.0569 to 0.3404. Altman, Machin,
  // Bryant and Gardner 2000, table 6.2, (14, 5, 0, 22): 0.011 to 0.226. Both state first minus second; ours is B minus
  // A, so their second is our A.
  const Interval newcombe = newcombe_paired({.both = 36, .only_a = 2, .only_b = 12, .neither = 0});
  EXPECT_NEAR(newcombe.low, 0.0569, 5e-5);
  EXPECT_NEAR(newcombe.high, 0.3404, 5e-5);
  const Interval altman = newcombe_paired({.both = 14, .only_a = 0, .only_b = 5, .neither = 22});
  EXPECT_NEAR(altman.low, 0.011, 5e-4);
  EXPECT_NEAR(altman.high, 0.226, 5e-4);
}

TEST(NewcombePaired, EqualsTheFormulaOverStatsmodelsWilsonIntervals) {
  // The formula of method 10 in NumPy over statsmodels.stats.proportion.proportion_confint(method="wilson").
  struct Case {
    PairedCounts counts;
    double low, high;
  };
  for (const auto& [counts, low, high] : {Case{{460, 4, 6, 42}, -0.00993871375250385, 0.01811865579201515},
                                          Case{{64, 0, 0, 0}, -0.05662405979280538, 0.05662405979280538},
                                          Case{{0, 0, 0, 10}, -0.27753279986288926, 0.27753279986288926},
                                          Case{{10, 5, 15, 20}, 0.025838416549251064, 0.35693657165919257},
                                          Case{{500, 7, 1, 4}, -0.026545239337847873, 0.0002057124335972521},
                                          Case{{1, 0, 0, 1}, -0.5734194679697172, 0.5734194679697172}}) {
    const Interval interval = newcombe_paired(counts);
    EXPECT_NEAR(interval.low, low, 1e-12);
    EXPECT_NEAR(interval.high, high, 1e-12);
  }
}

TEST(NewcombePaired, ExchangingTheArmsMirrorsTheInterval) {
  const Interval one = newcombe_paired({.both = 40, .only_a = 9, .only_b = 3, .neither = 11});
  const Interval other = newcombe_paired({.both = 40, .only_a = 3, .only_b = 9, .neither = 11});
  EXPECT_NEAR(one.low, -other.high, 1e-15);
  EXPECT_NEAR(one.high, -other.low, 1e-15);
  EXPECT_EQ(newcombe_paired({}), (Interval{-1.0, 1.0}));
}

TEST(DetectableDifference, SolvesConnorsEquationAsScipyDoes) {
  // scipy.optimize.brentq on z(0.975) sqrt(psi) + z(0.8) sqrt(psi - d^2) = d sqrt(n), z from scipy.stats.norm.ppf
  EXPECT_NEAR(detectable_difference(512, 10), 0.017263684225089067, 1e-12);
  EXPECT_NEAR(detectable_difference(512, 51), 0.03898688810895663, 1e-12);
  EXPECT_NEAR(detectable_difference(1319, 79), 0.018861852874679542, 1e-12);
  EXPECT_NEAR(detectable_difference(51200, 1024), 0.0017509504431272053, 1e-12);
}

TEST(DetectableDifference, IsNeverMoreThanTheDiscordantPairsItNeeds) {
  EXPECT_EQ(detectable_difference(64, 0), detectable_difference(64, 3)) << "three of 64 pairs cannot show a difference";
  EXPECT_NEAR(detectable_difference(64, 3), 0.1181887094008052, 1e-12);  // brentq with psi = d
  EXPECT_EQ(detectable_difference(2, 2), 1.0);
  EXPECT_LT(detectable_difference(1000, 50), detectable_difference(100, 5));
}

std::vector<double> draw(const std::vector<double>& values, std::span<const std::size_t> drawn) {
  std::vector<double> sample;
  for (const std::size_t i : drawn) sample.push_back(values[i]);
  return sample;
}

TEST(Bootstrap, GivesThePercentileIntervalsOfScipy) {
  // scipy.stats.bootstrap(method="percentile", n_resamples=400000); ours draws fewer, hence the tolerance.
  const std::vector<double> differences = {0, 0, 0, 1, 0, -1, 0, 0, 1, 1, 0, 0, 0, 0, -1, 0, 0, 0, 1, 0};
  const Interval difference = bootstrap_interval(
      differences.size(), {}, [&](std::span<const std::size_t> drawn) { return mean(draw(differences, drawn)); });
  EXPECT_NEAR(difference.low, -0.15, 1e-9);
  EXPECT_NEAR(difference.high, 0.35, 1e-9);

  const std::vector<double> ratios = {1.31, 1.28, 1.42, 1.35, 1.11, 1.27, 1.39, 1.30, 1.33, 1.26, 1.92, 1.29};
  const Interval of_mean = bootstrap_interval(
      ratios.size(), {}, [&](std::span<const std::size_t> drawn) { return mean(draw(ratios, drawn)); });
  EXPECT_NEAR(of_mean.low, 1.26667, 0.004);
  EXPECT_NEAR(of_mean.high, 1.4725, 0.006);
  const Interval of_median = bootstrap_interval(
      ratios.size(), {}, [&](std::span<const std::size_t> drawn) { return median(draw(ratios, drawn)); });
  EXPECT_NEAR(of_median.low, 1.275, 1e-9);
  EXPECT_NEAR(of_median.high, 1.37, 1e-9);
}

TEST(Bootstrap, IsTheSameForTheSameSeedAndAnotherForAnother) {
  const std::vector<double> values = {1, 2, 4, 8, 16, 32, 64};
  const auto run = [&](std::uint64_t seed) {
    return bootstrap_interval(values.size(), {.resamples = 200, .seed = seed},
                              [&](std::span<const std::size_t> drawn) { return mean(draw(values, drawn)); });
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_FALSE(run(1) == run(2));
}

}  // namespace
}  // namespace qpn8
