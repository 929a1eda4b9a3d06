#include "evidence/ab_summary.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace qpn8 {
namespace {

const ItemRecord& of_arm(const ItemRecords& records, ArmName arm) { return records[static_cast<std::size_t>(arm)]; }

bool is_repetitive(const ItemRecord& record) { return record.repeated_4gram >= kRepetitiveRate; }

ArmSummary summarise_arm(std::span<const ItemRecords> items, ArmName arm) {
  ArmSummary summary;
  std::vector<double> repeated;
  std::vector<double> lengths;
  std::vector<double> speeds;
  std::vector<double> first_tokens;
  for (const ItemRecords& records : items) {
    const ItemRecord& record = of_arm(records, arm);
    ++summary.count;
    if (record.correct) {
      ++summary.scored;
      summary.correct += *record.correct ? 1 : 0;
      summary.last_number_correct += record.last_number == record.expected ? 1 : 0;
      summary.readings_differ += record.last_number != record.value ? 1 : 0;
    }
    summary.invalid += record.invalid ? 1 : 0;
    summary.truncated += record.truncated ? 1 : 0;
    summary.repetitive += is_repetitive(record) ? 1 : 0;
    summary.replacement_chars += record.replacement_chars;
    summary.nul_chars += record.nul_chars;
    summary.retries += record.retries;
    repeated.push_back(record.repeated_4gram);
    lengths.push_back(static_cast<double>(record.output_tokens));
    first_tokens.push_back(record.ttft_ms);
    if (record.decode_tokens_per_s > 0) speeds.push_back(record.decode_tokens_per_s);
  }
  summary.repeated_4gram_mean = mean(repeated);
  summary.output_tokens_mean = mean(lengths);
  summary.decode_tokens_per_s = describe(std::move(speeds));
  summary.ttft_ms = describe(std::move(first_tokens));
  return summary;
}

/// Values of the pairs, grouped by item: one group an item, one value a seed.
using Groups = std::vector<std::vector<double>>;

template <class ValueOf>
Groups group_by_item(std::span<const ItemRecords> items, ValueOf&& value_of) {
  std::map<std::int64_t, std::vector<double>> groups;
  for (const ItemRecords& records : items) {
    const std::optional<double> value = value_of(records);
    if (value) groups[records.front().index].push_back(*value);
  }
  Groups list;
  for (auto& [index, values] : groups) list.push_back(std::move(values));
  return list;
}

std::vector<double> flatten(const Groups& groups) {
  std::vector<double> values;
  for (const auto& group : groups) values.insert(values.end(), group.begin(), group.end());
  return values;
}

Interval bootstrap_mean(const Groups& groups, const BootstrapOptions& options) {
  return bootstrap_interval(groups.size(), options, [&](std::span<const std::size_t> drawn) {
    double sum = 0.0;
    std::size_t count = 0;
    for (const std::size_t item : drawn) {
      for (const double value : groups[item]) sum += value;
      count += groups[item].size();
    }
    return sum / static_cast<double>(count);
  });
}

Interval bootstrap_median(const Groups& groups, const BootstrapOptions& options) {
  std::vector<double> values;
  return bootstrap_interval(groups.size(), options, [&](std::span<const std::size_t> drawn) {
    values.clear();
    for (const std::size_t item : drawn) values.insert(values.end(), groups[item].begin(), groups[item].end());
    return median(values);
  });
}

void compare_accuracy(std::span<const ItemRecords> items, ArmName arm, const BootstrapOptions& options,
                      PairedSummary& summary) {
  const Groups differences = group_by_item(items, [&](const ItemRecords& records) -> std::optional<double> {
    const auto& a = of_arm(records, ArmName::a).correct;
    const auto& other = of_arm(records, arm).correct;
    if (!a || !other) return std::nullopt;
    summary.correct.add(*a, *other);
    return static_cast<double>(*other) - static_cast<double>(*a);
  });
  if (differences.empty()) return;
  summary.mcnemar_p = mcnemar_exact(summary.correct.only_a, summary.correct.only_b);
  summary.newcombe = newcombe_paired(summary.correct);
  summary.bootstrap = bootstrap_mean(differences, options);
  summary.detectable_difference = detectable_difference(summary.correct.total(), summary.correct.discordant());
  summary.accuracy_diff_ci = summary.newcombe;
  if (static_cast<std::int64_t>(differences.size()) < summary.correct.total()) {
    summary.accuracy_diff_ci = {std::min(summary.newcombe.low, summary.bootstrap.low),
                                std::max(summary.newcombe.high, summary.bootstrap.high)};
  }
}

void compare_speed(std::span<const ItemRecords> items, ArmName arm, const BootstrapOptions& options,
                   PairedSummary& summary) {
  const Groups ratios = group_by_item(items, [&](const ItemRecords& records) -> std::optional<double> {
    const double a = of_arm(records, ArmName::a).decode_tokens_per_s;
    const double other = of_arm(records, arm).decode_tokens_per_s;
    if (a <= 0 || other <= 0) return std::nullopt;
    return other / a;
  });
  if (ratios.empty()) return;
  const std::vector<double> values = flatten(ratios);
  summary.decode_ratio_items = static_cast<std::int64_t>(values.size());
  summary.decode_ratio_mean = mean(values);
  summary.decode_ratio_median = median(values);
  summary.decode_ratio_ci = bootstrap_mean(ratios, options);
  summary.decode_ratio_median_ci = bootstrap_median(ratios, options);
}

PairedSummary compare(std::span<const ItemRecords> items, ArmName arm, const BootstrapOptions& options) {
  PairedSummary summary;
  summary.items = static_cast<std::int64_t>(items.size());
  std::vector<double> divergences;
  std::vector<double> length_changes;
  for (const ItemRecords& records : items) {
    const ItemRecord& a = of_arm(records, ArmName::a);
    const ItemRecord& other = of_arm(records, arm);
    summary.invalid.add(a.invalid, other.invalid);
    summary.truncated.add(a.truncated, other.truncated);
    summary.repetitive.add(is_repetitive(a), is_repetitive(other));
    summary.identical_hash += a.token_hash && a.token_hash == other.token_hash ? 1 : 0;
    summary.identical_text += a.answer == other.answer ? 1 : 0;
    length_changes.push_back(static_cast<double>(other.output_tokens - a.output_tokens));
    if (other.first_divergent_token) divergences.push_back(static_cast<double>(*other.first_divergent_token));
  }
  summary.length_change_mean = mean(length_changes);
  if (!divergences.empty()) summary.first_divergence_median = median(std::move(divergences));
  compare_accuracy(items, arm, options, summary);
  compare_speed(items, arm, options, summary);
  return summary;
}

}  // namespace

std::optional<double> ArmSummary::accuracy() const {
  if (scored == 0) return std::nullopt;
  return static_cast<double>(correct) / static_cast<double>(scored);
}

AbSummary summarise(std::span<const ItemRecords> items, const BootstrapOptions& bootstrap) {
  AbSummary summary;
  summary.a = summarise_arm(items, ArmName::a);
  summary.b = summarise_arm(items, ArmName::b);
  summary.aa = summarise_arm(items, ArmName::aa);
  summary.paired = compare(items, ArmName::b, bootstrap);
  summary.paired_aa = compare(items, ArmName::aa, bootstrap);
  return summary;
}

}  // namespace qpn8
