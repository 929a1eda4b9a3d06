#include "evidence/ab_result.hpp"

#include <optional>
#include <type_traits>
#include <vector>

#include "evidence/notable_items.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Interval& interval) { return Json::array({interval.low, interval.high}); }

template <class T>
Json to_json(const std::optional<T>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_same_v<T, Interval>) {
    return to_json(*value);
  } else {
    return *value;
  }
}

Json to_json(const Distribution& distribution) {
  return {{"mean", distribution.mean},
          {"median", distribution.median},
          {"p10", distribution.p10},
          {"p90", distribution.p90}};
}

Json to_json(const ArmSummary& arm, const Json& config) {
  return {{"config", config},
          {"correct", arm.correct},
          {"count", arm.count},
          {"scored", arm.scored},
          {"accuracy", to_json(arm.accuracy())},
          {"last_number_correct", arm.last_number_correct},
          {"readings_differ", arm.readings_differ},
          {"invalid", arm.invalid},
          {"truncated", arm.truncated},
          {"repetitive", arm.repetitive},
          {"replacement_chars", arm.replacement_chars},
          {"nul_chars", arm.nul_chars},
          {"repeated_4gram_mean", arm.repeated_4gram_mean},
          {"output_tokens_mean", arm.output_tokens_mean},
          {"decode_tokens_per_s", to_json(arm.decode_tokens_per_s)},
          {"ttft_ms", to_json(arm.ttft_ms)},
          {"retries", arm.retries}};
}

/// Rise of a fault's rate, with its interval.
Json rise_json(const PairedCounts& counts) {
  return {{"diff", counts.difference()}, {"ci", to_json(newcombe_paired(counts))}};
}

Json to_json(const PairedSummary& paired) {
  return {{"items", paired.items},
          {"both", paired.correct.both},
          {"only_a", paired.correct.only_a},
          {"only_b", paired.correct.only_b},
          {"neither", paired.correct.neither},
          {"mcnemar_p", paired.mcnemar_p},
          {"accuracy_diff", paired.correct.difference()},
          {"accuracy_diff_ci", to_json(paired.accuracy_diff_ci)},
          {"accuracy_diff_newcombe", to_json(paired.newcombe)},
          {"accuracy_diff_bootstrap", to_json(paired.bootstrap)},
          {"detectable_difference", paired.detectable_difference},
          {"decode_ratio_items", paired.decode_ratio_items},
          {"decode_ratio_mean", to_json(paired.decode_ratio_mean)},
          {"decode_ratio_median", to_json(paired.decode_ratio_median)},
          {"decode_ratio_ci", to_json(paired.decode_ratio_ci)},
          {"decode_ratio_median_ci", to_json(paired.decode_ratio_median_ci)},
          {"identical_hash", paired.identical_hash},
          {"identical_text", paired.identical_text},
          {"first_divergence_median", to_json(paired.first_divergence_median)},
          {"length_change_mean", paired.length_change_mean},
          {"invalid_rise", rise_json(paired.invalid)},
          {"truncated_rise", rise_json(paired.truncated)},
          {"repetitive_rise", rise_json(paired.repetitive)}};
}

Json to_json(const Verdict& verdict, const VerdictLimits& limits) {
  return {{"quality", to_string(verdict.quality)},    {"margin", limits.margin},
          {"rate_bound", limits.rate_bound},          {"speed", to_string(verdict.speed)},
          {"recommendation", verdict.recommendation}, {"reasons", verdict.reasons}};
}

Json to_json(const std::vector<NotableItem>& items) {
  Json list = Json::array();
  for (const NotableItem& item : items) {
    const ItemRecord& first = item.records->front();
    list.push_back({{"index", first.index}, {"id", first.id}, {"seed", first.seed}, {"why", item.why}});
  }
  return list;
}

}  // namespace

Json to_json(const AbResult& result) {
  const AbSummary& summary = result.summary;
  return {{"arms",
           {{"a", to_json(summary.a, result.config_a)},
            {"b", to_json(summary.b, result.config_b)},
            {"aa", to_json(summary.aa, result.config_a)}}},
          {"paired", to_json(summary.paired)},
          {"paired_aa", to_json(summary.paired_aa)},
          {"verdict", to_json(result.verdict, result.limits)},
          {"discordant", to_json(discordant_items(result.items))},
          {"outliers", to_json(outlying_items(result.items))},
          {"run", result.run},
          {"plan", result.plan}};
}

}  // namespace qpn8
