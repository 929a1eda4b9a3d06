#include "engine/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/cpu/argmax.hpp"

#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using Logits = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Sum of twelve uniforms: near enough to a normal distribution, the same everywhere.
float roughly_normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.below(1 << 20)) / (1 << 20);
  return static_cast<float>(sum);
}

Logits random_logits(std::size_t count, Random& random, float spread) {
  Logits logits(count);
  for (float& logit : logits) logit = spread * roughly_normal(random);
  return logits;
}

// The probabilities of the options' definition, in FP64, with sorting: the oracle of the sampler.
std::vector<double> probabilities(const Logits& logits, const SamplingOptions& options) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(options.top_k)));
  std::vector<double> weights(logits.size(), 0.0);
  double total = 0;
  for (const std::size_t i : order) {
    weights[i] = std::exp((static_cast<double>(logits[i]) - logits[order[0]]) / options.temperature);
    total += weights[i];
  }
  double before = 0;
  for (const std::size_t i : order) {
    const double weight = weights[i];
    if (before >= options.top_p * total || weight < options.min_p) weights[i] = 0;
    before += weight;
  }
  const double kept = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= kept;
  return weights;
}

std::map<TokenId, int> draw_many(const Logits& logits, const SamplingOptions& options, int count) {
  Sampler sampler(logits.size());
  sampler.start(options, {});
  std::map<TokenId, int> counts;
  for (int i = 0; i < count; ++i) {
    Logits copy = logits;
    ++counts[sampler.next(copy).value()];
  }
  return counts;
}

TokenId greedy(Logits logits, double penalty = 1.0, const std::vector<TokenId>& prompt = {}) {
  Sampler sampler(logits.size());
  sampler.start({.repetition_penalty = penalty}, prompt);
  return sampler.next(logits).value();
}

using cpu::argmax;

TEST(Argmax, TiesGoToTheLowerIndexAndBothZeroesAreEqual) {
  EXPECT_EQ(argmax(Logits{1, 3, 2, 3}), 1U);
  EXPECT_EQ(argmax(Logits{-2, -0.0F, 0.0F}), 1U);
  EXPECT_EQ(argmax(Logits{-2, 0.0F, -0.0F}), 1U);
  EXPECT_EQ(argmax(Logits{-5, -4, -6}), 1U);
  EXPECT_EQ(argmax(Logits{std::numeric_limits<float>::lowest()}), 0U);
}

TEST(Argmax, AnythingNotFiniteGivesNothing) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (std::size_t at = 0; at < 5; ++at) {
      Logits logits = {1, 2, 3, 4, 5};
      logits[at] = bad;
      EXPECT_EQ(argmax(logits), std::nullopt) << bad << " at " << at;
    }
  }
  EXPECT_EQ(argmax(Logits{}), std::nullopt);
}

TEST(Sampler, NonFiniteLogitsGiveNothingWhateverTheOptions) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const double temperature : {0.0, 0.7}) {
      for (const double penalty : {1.0, 1.3}) {
        Logits logits = {1, bad, 2};
        Sampler sampler(logits.size());
        sampler.start({.temperature = temperature, .top_k = 2, .repetition_penalty = penalty}, std::vector<TokenId>{1});
        EXPECT_EQ(sampler.next(logits), std::nullopt) << bad << " " << temperature << " " << penalty;
      }
    }
  }
}

TEST(Sampler, ThePenaltyDividesPositiveAndMultipliesNegativeLogitsOnce) {
  // 3 / 1.5 = 2 < 2.5; the token counts once although the prompt has it twice.
  EXPECT_EQ(greedy({3, 2.5F, 0}, 1.5, {0, 0}), 1);
  EXPECT_EQ(greedy({3, 1.9F, 0}, 1.5, {0, 0}), 0);
  // -1 * 1.5 = -1.5 < -1.2
  EXPECT_EQ(greedy({-1, -1.2F, -9}, 1.5, {0}), 1);
  EXPECT_EQ(greedy({3, 2.5F, 0}, 1.0, {0}), 0);
}

TEST(Sampler, ThePenaltySeesTheOutputAndForgetsItWithTheNextSequence) {
  Sampler sampler(3);
  const SamplingOptions options = {.repetition_penalty = 2.0};
  for (int sequence = 0; sequence < 2; ++sequence) {
    sampler.start(options, {});
    std::vector<TokenId> output;
    for (int i = 0; i < 3; ++i) {
      Logits logits = {4, 3, 2.5F};
      output.push_back(sampler.next(logits).value());
    }
    EXPECT_THAT(output, testing::ElementsAre(0, 1, 2));
  }
}

TEST(Sampler, AHugePenaltyStaysFinite) {
  EXPECT_EQ(greedy({-1e30F, -3e38F}, 1e30, {0}), 1);
  EXPECT_EQ(greedy({1e30F, 2}, 1e-30, {0}), 0);
}

TEST(Sampler, FrequenciesFollowTheHandComputedProbabilities) {
  // exp(ln 5) : exp(ln 3) : exp(ln 2) = 0.5 : 0.3 : 0.2
  const Logits logits = {std::log(5.0F), std::log(3.0F), std::log(2.0F)};
  auto counts = draw_many(logits, {.temperature = 1}, 20000);
  EXPECT_NEAR(counts[0], 10000, 350);
  EXPECT_NEAR(counts[1], 6000, 350);
  // Temperature 0.5 squares them: 25 : 9 : 4 of 38
  counts = draw_many(logits, {.temperature = 0.5}, 19000);
  EXPECT_NEAR(counts[0], 12500, 350);
  EXPECT_NEAR(counts[1], 4500, 350);
}

TEST(Sampler, EachCutKeepsWhatItsDefinitionSays) {
  const Logits logits = {std::log(2.0F), std::log(5.0F), std::log(3.0F)};
  const auto kept = [&](const SamplingOptions& options) {
    std::set<TokenId> ids;
    for (const auto& [id, count] : draw_many(logits, options, 2000)) ids.insert(id);
    return ids;
  };
  using Ids = std::set<TokenId>;
  EXPECT_EQ(kept({.temperature = 1, .top_k = 1}), Ids({1}));
  EXPECT_EQ(kept({.temperature = 1, .top_k = 2}), Ids({1, 2}));
  EXPECT_EQ(kept({.temperature = 1, .top_k = 9}), Ids({0, 1, 2}));
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.49}), Ids({1}));
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.51}), Ids({1, 2}));
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.81}), Ids({0, 1, 2}));
  EXPECT_EQ(kept({.temperature = 1, .top_p = 1e-9}), Ids({1}));
  EXPECT_EQ(kept({.temperature = 1, .min_p = 0.39}), Ids({0, 1, 2}));
  EXPECT_EQ(kept({.temperature = 1, .min_p = 0.41}), Ids({1, 2}));
  EXPECT_EQ(kept({.temperature = 1, .min_p = 0.61}), Ids({1}));
  // top-p is of what top-k leaves: 5 of 8 is above 0.6
  EXPECT_EQ(kept({.temperature = 1, .top_k = 2, .top_p = 0.6}), Ids({1}));
  // the temperature comes before top-p: 25 of 38 is above 0.6
  EXPECT_EQ(kept({.temperature = 0.5, .top_p = 0.6}), Ids({1}));
}

TEST(Sampler, TiesAtACutGoToTheLowerIds) {
  const auto counts = draw_many({1, 1, 1, 1}, {.temperature = 1, .top_k = 2}, 500);
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_TRUE(counts.contains(0) && counts.contains(1));
  const auto half = draw_many({1, 1, 1, 1}, {.temperature = 1, .top_p = 0.5}, 500);
  EXPECT_EQ(half.size(), 2U);
  EXPECT_TRUE(half.contains(0) && half.contains(1));
}

TEST(Sampler, OnRandomLogitsTheFrequenciesMatchTheSortingOracle) {
  Random random(21);
  for (int round = 0; round < 15; ++round) {
    const Logits logits = random_logits(2 + random.below(300), random, 2.0F);
    const SamplingOptions options = {.temperature = 0.2 + 0.01 * static_cast<double>(random.below(150)),
                                     .top_k = static_cast<int>(random.below(2) * random.below(60)),
                                     .top_p = random.below(2) == 0 ? 1.0 : 0.3 + 0.007 * double(random.below(99)),
                                     .min_p = random.below(2) == 0 ? 0.0 : 0.001 * double(random.below(300)),
                                     .seed = random.next()};
    constexpr int kDraws = 2000;
    const std::vector<double> expected = probabilities(logits, options);
    auto counts = draw_many(logits, options, kDraws);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const int count = counts[static_cast<TokenId>(i)];
      if (expected[i] == 0) {
        EXPECT_EQ(count, 0) << "round " << round << " token " << i;
      }
      const double deviation = std::sqrt(expected[i] * (1 - expected[i]) / kDraws);
      EXPECT_NEAR(static_cast<double>(count) / kDraws, expected[i], 5 * deviation + 1e-3) << round << " " << i;
    }
  }
}

TEST(Sampler, ALargeVocabularyInAnyOrderKeepsExactlyTheTopK) {
  Random random(4);
  constexpr std::size_t kManyTokens = 3000;
  Logits rising(kManyTokens);
  std::iota(rising.begin(), rising.end(), -3e3F);
  for (float& logit : rising) logit *= 1e-3F;  // nearly flat, so that every kept token is drawn sometimes
  const Logits falling(rising.rbegin(), rising.rend());
  for (const Logits& logits : {rising, falling, random_logits(kManyTokens, random, 1.0F)}) {
    for (const int k : {1, 7, 40}) {
      std::vector<float> sorted = logits;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      const float last = sorted[static_cast<std::size_t>(k - 1)];
      const auto counts = draw_many(logits, {.temperature = 100, .top_k = k}, 12 * k);
      for (const auto& [id, count] : counts) EXPECT_GE(logits[static_cast<std::size_t>(id)], last);
      EXPECT_GE(counts.size(), static_cast<std::size_t>(k) * 95 / 100);
    }
  }
}

TEST(Sampler, TheSameSeedGivesTheSameTokensAndAnotherSeedOthers) {
  Random random(8);
  const Logits logits = random_logits(500, random, 1.0F);
  const auto sequence = [&](std::uint64_t seed) {
    Sampler sampler(logits.size());
    sampler.start({.temperature = 1, .top_p = 0.95, .seed = seed}, {});
    std::vector<TokenId> ids;
    for (int i = 0; i < 20; ++i) {
      Logits copy = logits;
      ids.push_back(sampler.next(copy).value());
    }
    return ids;
  };
  EXPECT_EQ(sequence(5), sequence(5));
  EXPECT_NE(sequence(5), sequence(6));
  // Written down once: a change of generator, weights or order would change every recorded experiment.
  EXPECT_THAT(sequence(5), testing::ElementsAre(74, 141, 214, 196, 118, 29, 157, 99, 59, 118, 196, 472, 157, 116, 103,
                                                343, 14, 164, 387, 141));
}

TEST(Sampler, ExtremeTemperaturesAreGreedyAndUniform) {
  const Logits logits = {0, 1, 1 - 1e-6F, -50};
  for (const double temperature : {1e-320, 1e-45, 1e-12}) {
    EXPECT_EQ(draw_many(logits, {.temperature = temperature}, 50), (std::map<TokenId, int>{{1, 50}})) << temperature;
  }
  EXPECT_EQ(draw_many(logits, {.temperature = 1e308}, 500).size(), 4U);
}

TEST(SamplingOptions, EachIllegalValueIsRefusedByName) {
  struct Case {
    SamplingOptions options;
    const char* name;
  };
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Case> cases = {
      {{.temperature = -0.1}, "temperature"},
      {{.temperature = nan}, "temperature"},
      {{.temperature = infinity}, "temperature"},
      {{.top_k = -1}, "top_k"},
      {{.top_p = 0}, "top_p"},
      {{.top_p = 1.01}, "top_p"},
      {{.top_p = nan}, "top_p"},
      {{.min_p = -0.1}, "min_p"},
      {{.min_p = 1}, "min_p"},
      {{.min_p = nan}, "min_p"},
      {{.repetition_penalty = 0}, "repetition_penalty"},
      {{.repetition_penalty = infinity}, "repetition_penalty"},
  };
  for (const Case& c : cases) {
    test::expect_error(
        Error::bad_argument, [&] { c.options.validate(); }, testing::StartsWith(c.name));
  }
  SamplingOptions{}.validate();
}

}  // namespace
}  // namespace qpn8
