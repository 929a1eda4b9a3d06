#include "evidence/report_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "evidence/signed_text.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

template <class Summary>
struct Row {
  std::string_view name;
  std::function<std::string(const Summary&)> cell;
};

std::string percent(double fraction) { return fmt::format("{:.2f} %", fraction * 100); }
std::string points(double fraction) { return signed_text(fraction * 100) + " points"; }

std::string points(const Interval& interval) {
  return signed_text(interval.low * 100) + " to " + signed_text(interval.high * 100);
}

std::string share(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{}/{} ({})", part, whole, percent(static_cast<double>(part) / static_cast<double>(whole)));
}

std::string spread(const Distribution& distribution) {
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", distribution.median, distribution.p10, distribution.p90);
}

std::string ratio(const std::optional<double>& value, const std::optional<Interval>& interval) {
  if (!value || !interval) return "-";
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", *value, interval->low, interval->high);
}

std::string rise(const PairedCounts& counts) {
  return fmt::format("{} ({})", points(counts.difference()), points(newcombe_paired(counts)));
}

std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

std::string list_of(const Json& values) {
  std::string text;
  for (const Json& value : values) text += (text.empty() ? "" : ", ") + shown(value);
  return text;
}

/// What an arm's options have that the other's have not, since the rest is equal and long.
std::string own_options(const Json& config, const Json& other) {
  std::string text;
  for (const auto& [key, value] : config.items()) {
    if (other.contains(key) && other.at(key) == value) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, shown(value));
  }
  return text.empty() ? "as the other arm" : text;
}

}  // namespace

Table arms_table(const AbResult& result) {
  using Summary = ArmSummary;
  static const std::vector<Row<Summary>> kRows = {
      {"correct", [](const Summary& arm) { return share(arm.correct, arm.scored); }},
      {"correct by last number", [](const Summary& arm) { return share(arm.last_number_correct, arm.scored); }},
      {"readings differ", [](const Summary& arm) { return share(arm.readings_differ, arm.scored); }},
      {"invalid", [](const Summary& arm) { return share(arm.invalid, arm.count); }},
      {"truncated", [](const Summary& arm) { return share(arm.truncated, arm.count); }},
      {"repetitive", [](const Summary& arm) { return share(arm.repetitive, arm.count); }},
      {"repeated 4-grams, mean", [](const Summary& arm) { return percent(arm.repeated_4gram_mean); }},
      {"U+FFFD / NUL", [](const Summary& arm) { return fmt::format("{} / {}", arm.replacement_chars, arm.nul_chars); }},
      {"output tokens, mean", [](const Summary& arm) { return fmt::format("{:.1f}", arm.output_tokens_mean); }},
      {"decode tok/s, mean", [](const Summary& arm) { return fmt::format("{:.1f}", arm.decode_tokens_per_s.mean); }},
      {"decode tok/s, median (p10 to p90)", [](const Summary& arm) { return spread(arm.decode_tokens_per_s); }},
      {"first token ms, median (p10 to p90)", [](const Summary& arm) { return spread(arm.ttft_ms); }},
      {"retries", [](const Summary& arm) { return fmt::format("{}", arm.retries); }},
  };
  Table table{{"", "A", "B", "A/A"}, {}};
  for (const auto& row : kRows) {
    table.rows.push_back(
        {std::string(row.name), row.cell(result.summary.a), row.cell(result.summary.b), row.cell(result.summary.aa)});
  }
  return table;
}

Table paired_table(const AbResult& result) {
  using Summary = PairedSummary;
  static const std::vector<Row<Summary>> kRows = {
      {"pairs", [](const Summary& pair) { return fmt::format("{}", pair.items); }},
      {"both right", [](const Summary& pair) { return fmt::format("{}", pair.correct.both); }},
      {"only A right", [](const Summary& pair) { return fmt::format("{}", pair.correct.only_a); }},
      {"only the other right", [](const Summary& pair) { return fmt::format("{}", pair.correct.only_b); }},
      {"neither right", [](const Summary& pair) { return fmt::format("{}", pair.correct.neither); }},
      {"exact McNemar p", [](const Summary& pair) { return fmt::format("{:.4f}", pair.mcnemar_p); }},
      {"accuracy difference", [](const Summary& pair) { return points(pair.correct.difference()); }},
      {"95 % interval, Newcombe", [](const Summary& pair) { return points(pair.newcombe); }},
      {"95 % interval, bootstrap over items", [](const Summary& pair) { return points(pair.bootstrap); }},
      {"smallest difference these pairs could show",
       [](const Summary& pair) { return fmt::format("{:.2f} points", pair.detectable_difference * 100); }},
      {"decode ratio, mean (95 %)",
       [](const Summary& pair) { return ratio(pair.decode_ratio_mean, pair.decode_ratio_ci); }},
      {"decode ratio, median (95 %)",
       [](const Summary& pair) { return ratio(pair.decode_ratio_median, pair.decode_ratio_median_ci); }},
      {"identical token hashes", [](const Summary& pair) { return share(pair.identical_hash, pair.items); }},
      {"identical texts", [](const Summary& pair) { return share(pair.identical_text, pair.items); }},
      {"first divergent token, median",
       [](const Summary& pair) {
         return pair.first_divergence_median ? fmt::format("{:.0f}", *pair.first_divergence_median) : "-";
       }},
      {"length change, mean", [](const Summary& pair) { return signed_text(pair.length_change_mean) + " tokens"; }},
      {"rise of invalid (95 %)", [](const Summary& pair) { return rise(pair.invalid); }},
      {"rise of truncated (95 %)", [](const Summary& pair) { return rise(pair.truncated); }},
      {"rise of repetitive (95 %)", [](const Summary& pair) { return rise(pair.repetitive); }},
  };
  Table table{{"", "B against A", "A/A against A"}, {}};
  for (const auto& row : kRows) {
    table.rows.push_back({std::string(row.name), row.cell(result.summary.paired), row.cell(result.summary.paired_aa)});
  }
  return table;
}

Table run_table(const AbResult& result) {
  Table table{{"", "value"}, {}};
  table.rows.push_back({"only in A", own_options(result.config_a, result.config_b)});
  table.rows.push_back({"only in B", own_options(result.config_b, result.config_a)});
  for (const auto& [key, value] : result.run.items()) {
    if (value.is_object() || value.is_null()) continue;
    table.rows.push_back({key, value.is_array() ? list_of(value) : shown(value)});
  }
  return table;
}

Table plan_table(const AbResult& result) {
  Table table{{"role", "K x N", "route", "why", "projections"}, {}};
  if (!result.plan.is_object()) return table;
  std::vector<std::pair<std::vector<std::string>, std::int64_t>> kinds;
  for (const Json& projection : result.plan.at("projections")) {
    std::vector<std::string> kind = {projection.at("role"),
                                     fmt::format("{} x {}", shown(projection.at("k")), shown(projection.at("n"))),
                                     projection.at("route"), projection.at("reason")};
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& known) { return known.first == kind; });
    if (found == kinds.end()) {
      kinds.emplace_back(std::move(kind), 1);
    } else {
      ++found->second;
    }
  }
  for (auto& [kind, count] : kinds) {
    kind.push_back(std::to_string(count));
    table.rows.push_back(std::move(kind));
  }
  return table;
}

std::vector<std::string> definitions() {
  const std::string repetitive = fmt::format(
      "The repeated-4-gram rate is 1 - distinct / total over an output's token 4-grams; an output is "
      "repetitive from {:.0f} % on.",
      kRepetitiveRate * 100);
  return {
      "Decode tok/s is (output tokens - 1) / (time of the last token - time of the first).",
      "A decode ratio is an item's decode tok/s under the other arm over that under A.",
      repetitive,
      "Invalid is an output without an integer where one is expected, or without any text.",
      "Truncated is an output that its length ended.",
      "An answer is read from the last \\boxed{}, else it is the last number.",
      R"("By last number" takes the last number always; where the readings differ the format is at fault.)",
      "A/A is arm A run once more among the others: what it shows against A is what equal arms differ by.",
      "Token hashes, positions of divergence and single flips are recorded and decide nothing.",
  };
}

}  // namespace qpn8
