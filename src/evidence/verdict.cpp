#include "evidence/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "evidence/signed_text.hpp"

namespace qpn8 {
namespace {

std::string signed_points(double fraction) { return signed_text(fraction * 100); }

std::string signed_points(const Interval& interval) {
  return fmt::format("{} to {} points", signed_points(interval.low), signed_points(interval.high));
}

/// The multiple of the present items at which the same rates would show non-inferiority; nothing within 100 times.
std::optional<std::int64_t> items_to_decide(const PairedCounts& counts, double margin) {
  for (std::int64_t times = 2; times <= 100; ++times) {
    const PairedCounts more{counts.both * times, counts.only_a * times, counts.only_b * times, counts.neither * times};
    if (newcombe_paired(more).low > -margin) return more.total();
  }
  return std::nullopt;
}

Quality judge_accuracy(const PairedSummary& paired, double margin, std::vector<std::string>& reasons) {
  if (paired.correct.total() == 0) {
    reasons.emplace_back("the data set has no expected answers, so accuracy decides nothing");
    return Quality::undecided;
  }
  const std::string measured =
      fmt::format("accuracy of B minus A is {} points, 95 % interval {}", signed_points(paired.correct.difference()),
                  signed_points(paired.accuracy_diff_ci));
  if (paired.accuracy_diff_ci.high < -margin) {
    reasons.push_back(fmt::format("{}: all of it below the margin of {}", measured, signed_points(-margin)));
    return Quality::inferior;
  }
  if (paired.accuracy_diff_ci.low > -margin) {
    reasons.push_back(fmt::format("{}: all of it above the margin of {}", measured, signed_points(-margin)));
    return Quality::non_inferior;
  }
  const std::optional<std::int64_t> needed = items_to_decide(paired.correct, margin);
  const std::string outlook = needed ? fmt::format("at these rates about {} pairs would decide", *needed)
                                     : "more items at these rates would not show it either";
  reasons.push_back(
      fmt::format("{}: it reaches below the margin of {}; {}", measured, signed_points(-margin), outlook));
  return Quality::undecided;
}

/// PairedCounts of a fault: its difference is the rise from A to B.
Quality judge_rate(std::string_view name, const PairedCounts& counts, double bound, std::vector<std::string>& reasons) {
  const double rise = counts.difference();
  if (rise <= bound) return Quality::non_inferior;
  const Interval interval = newcombe_paired(counts);
  const bool proved = interval.low > bound;
  reasons.push_back(fmt::format("the rate of {} outputs rises by {} points, 95 % interval {}: {} the bound of {}", name,
                                signed_points(rise), signed_points(interval),
                                proved ? "all of it above" : "it reaches below", signed_points(bound)));
  return proved ? Quality::inferior : Quality::undecided;
}

/// The worse of two judgements: inferior, then undecided.
Quality worse(Quality left, Quality right) {
  const auto badness = [](Quality quality) {
    static constexpr std::array<int, 3> kBadness = {0, 2, 1};
    return kBadness[static_cast<std::size_t>(quality)];
  };
  return badness(left) >= badness(right) ? left : right;
}

/// How far from 1 the decode ratio of equal arms may lie.
double noise_floor(const PairedSummary& equal_arms) {
  if (!equal_arms.decode_ratio_ci) return 0.0;
  return std::max(std::abs(equal_arms.decode_ratio_ci->low - 1), std::abs(equal_arms.decode_ratio_ci->high - 1));
}

Speed judge_speed(const AbSummary& summary, std::vector<std::string>& reasons) {
  const PairedSummary& paired = summary.paired;
  if (!paired.decode_ratio_ci) {
    reasons.emplace_back("no pair of outputs has two tokens to time, so speed decides nothing");
    return Speed::same;
  }
  const double floor = noise_floor(summary.paired_aa);
  reasons.push_back(
      fmt::format("B decodes at {:.3f} times the speed of A (mean of {} ratios, 95 % interval {:.3f} to {:.3f}); equal "
                  "arms lie within "
                  "{:.3f} of 1",
                  *paired.decode_ratio_mean, paired.decode_ratio_items, paired.decode_ratio_ci->low,
                  paired.decode_ratio_ci->high, floor));
  if (paired.decode_ratio_ci->low > 1 + floor) return Speed::faster;
  if (paired.decode_ratio_ci->high < 1 - floor) return Speed::slower;
  return Speed::same;
}

std::string recommend(Quality quality, Speed speed) {
  if (quality == Quality::inferior) return "keep A: B is inferior";
  if (quality == Quality::undecided) {
    return speed == Speed::faster ? "B is faster and not shown to be worse: it may stay on where it is, and more items "
                                    "would show whether it "
                                    "is as good"
                                  : "keep A for now: these items cannot show that B is as good";
  }
  static constexpr std::array<std::string_view, 3> kBySpeed = {
      "B may be on by default: it is as good as A within the margin, and faster",
      "keep A: B is as good within the margin, but slower",
      "either will do: B is as good as A within the margin, and as fast",
  };
  return std::string(kBySpeed[static_cast<std::size_t>(speed)]);
}

}  // namespace

std::string_view to_string(Quality quality) {
  static constexpr std::array<std::string_view, 3> kTexts = {"non-inferior", "inferior", "undecided"};
  return kTexts[static_cast<std::size_t>(quality)];
}

std::string_view to_string(Speed speed) {
  static constexpr std::array<std::string_view, 3> kTexts = {"faster", "slower", "same"};
  return kTexts[static_cast<std::size_t>(speed)];
}

bool on_by_default(const Verdict& verdict) {
  return verdict.speed == Speed::faster && verdict.quality != Quality::inferior;
}

Verdict judge(const AbSummary& summary, const VerdictLimits& limits) {
  Verdict verdict;
  const PairedSummary& paired = summary.paired;
  verdict.quality = judge_accuracy(paired, limits.margin, verdict.reasons);
  for (const auto& [name, counts] : {std::pair("invalid", &paired.invalid), std::pair("truncated", &paired.truncated),
                                     std::pair("repetitive", &paired.repetitive)}) {
    verdict.quality = worse(verdict.quality, judge_rate(name, *counts, limits.rate_bound, verdict.reasons));
  }
  verdict.speed = judge_speed(summary, verdict.reasons);
  verdict.recommendation = recommend(verdict.quality, verdict.speed);
  const std::int64_t unequal = summary.paired_aa.items - summary.paired_aa.identical_text;
  if (unequal > 0) {
    verdict.reasons.push_back(
        fmt::format("A repeated itself with another text on {} of {} items: part of what differs between A and B is "
                    "not B's doing",
                    unequal, summary.paired_aa.items));
  }
  return verdict;
}

}  // namespace qpn8
