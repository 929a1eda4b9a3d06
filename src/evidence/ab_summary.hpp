#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "evidence/ab_schedule.hpp"
#include "evidence/item_log.hpp"
#include "evidence/statistics.hpp"

namespace qpn8 {

/// An output counts as repetitive from this repeated-4-gram rate on: half of its 4-grams have been there before.
inline constexpr double kRepetitiveRate = 0.5;

/// All outputs of one arm.
struct ArmSummary {
  std::int64_t count = 0;
  std::int64_t scored = 0;  ///< outputs whose item has an expected answer
  std::int64_t correct = 0;
  std::int64_t last_number_correct = 0;  ///< had the last number been taken for the answer
  std::int64_t readings_differ = 0;      ///< boxed-first and last number read different values
  std::int64_t invalid = 0;
  std::int64_t truncated = 0;
  std::int64_t repetitive = 0;
  std::int64_t replacement_chars = 0;
  std::int64_t nul_chars = 0;
  std::int64_t retries = 0;
  double repeated_4gram_mean = 0.0;
  double output_tokens_mean = 0.0;
  Distribution decode_tokens_per_s;  ///< of the outputs that have a speed
  Distribution ttft_ms;

  std::optional<double> accuracy() const;  ///< nothing if no item has an expected answer
};

/// One arm against A, item by item; differences and ratios are the arm's over A's.
struct PairedSummary {
  std::int64_t items = 0;
  PairedCounts correct;
  PairedCounts invalid;
  PairedCounts truncated;
  PairedCounts repetitive;
  double mcnemar_p = 1.0;
  Interval newcombe{-1.0, 1.0};
  Interval bootstrap{-1.0, 1.0};  ///< resampling items
  Interval accuracy_diff_ci{-1.0,
                            1.0};      ///< newcombe; with several seeds, whose outputs are not independent, both joined
  double detectable_difference = 1.0;  ///< see statistics.hpp
  std::int64_t decode_ratio_items = 0;  ///< pairs that both have a speed; the ratios below are of those
  std::optional<double> decode_ratio_mean;
  std::optional<double> decode_ratio_median;
  std::optional<Interval> decode_ratio_ci;  ///< of the mean
  std::optional<Interval> decode_ratio_median_ci;
  std::int64_t identical_hash = 0;
  std::int64_t identical_text = 0;
  std::optional<double> first_divergence_median;  ///< of the outputs that diverge
  double length_change_mean = 0.0;                ///< tokens
};

struct AbSummary {
  ArmSummary a;
  ArmSummary b;
  ArmSummary aa;
  PairedSummary paired;     ///< B against A
  PairedSummary paired_aa;  ///< A/A against A: what differs between equal arms
};

/// `items` is not empty.
AbSummary summarise(std::span<const ItemRecords> items, const BootstrapOptions& bootstrap = {});

}  // namespace qpn8
