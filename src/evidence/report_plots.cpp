#include "evidence/report_plots.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include "evidence/notable_items.hpp"
#include "evidence/svg_plot.hpp"

namespace qpn8 {
namespace {

/// A value of an item's output by an arm, beside A's; nothing if it has none.
using Value = std::function<std::optional<double>(const ItemRecord& record, const ItemRecord& a)>;

PlotSeries series_of(const AbResult& result, ArmName arm, const Value& value) {
  static constexpr std::array<std::string_view, 3> kNames = {"A", "B", "A/A"};
  PlotSeries series{std::string(kNames[static_cast<std::size_t>(arm)]), fmt::format("series-{}", to_string(arm)), {}};
  for (const ItemRecords& records : result.items) {
    const auto one = value(records[static_cast<std::size_t>(arm)], records[static_cast<std::size_t>(ArmName::a)]);
    if (one) series.values.push_back(*one);
  }
  return series;
}

Figure histogram(const AbResult& result, const std::string& title, const std::string& axis, const std::string& caption,
                 Values kind, const std::vector<ArmName>& arms, const Value& value) {
  std::vector<PlotSeries> series;
  series.reserve(arms.size());
  for (const ArmName arm : arms) series.push_back(series_of(result, arm, value));
  return {title, histogram_plot(title, axis, kind, series), caption};
}

Figure paired_speed(const AbResult& result) {
  std::set<const ItemRecords*> outlying;
  for (const NotableItem& item : outlying_items(result.items)) outlying.insert(item.records);
  std::vector<PlotPoint> points;
  for (const ItemRecords& records : result.items) {
    const auto& [a, b, aa] = records;
    if (a.decode_tokens_per_s <= 0 || b.decode_tokens_per_s <= 0) continue;
    points.push_back(
        {a.decode_tokens_per_s, b.decode_tokens_per_s,
         fmt::format("{} (seed {}): A {:.1f}, B {:.1f} tok/s, {:.2f}x", a.id, a.seed, a.decode_tokens_per_s,
                     b.decode_tokens_per_s, b.decode_tokens_per_s / a.decode_tokens_per_s),
         outlying.contains(&records)});
  }
  const std::string title = "Decode speed, item by item";
  return {title, paired_scatter(title, "A, tok/s", "B, tok/s", points),
          "One point an item. Above the diagonal B is faster; what is red is in the list of outlying items."};
}

}  // namespace

std::vector<Figure> report_figures(const AbResult& result) {
  using enum ArmName;
  return {
      paired_speed(result),
      histogram(
          result, "Decode speed of each arm", "decode speed, tok/s",
          "A and A/A are the same arm: as far as they lie apart, a distance between A and B means nothing. Heights are "
          "outputs, each arm's by its own peak.",
          Values::real, {a, b, aa},
          [](const ItemRecord& record, const ItemRecord&) -> std::optional<double> {
            if (record.decode_tokens_per_s <= 0) return std::nullopt;
            return record.decode_tokens_per_s;
          }),
      histogram(
          result, "Change of the output's length", "output tokens, arm minus A",
          "At zero the output is as long as A's. A shift to the right is an arm that rambles, and pays for its speed.",
          Values::whole, {b, aa},
          [](const ItemRecord& record, const ItemRecord& first) -> std::optional<double> {
            return static_cast<double>(record.output_tokens - first.output_tokens);
          }),
      histogram(
          result, "Repetition", "repeated-4-gram rate, 0 to 1",
          "Arithmetic repeats itself a little; a decoder that loops is near 1.", Values::real, {a, b, aa},
          [](const ItemRecord& record, const ItemRecord&) -> std::optional<double> { return record.repeated_4gram; }),
      histogram(result, "Where outputs part from A's", "position of the first divergent token",
                "Only outputs that do differ. Recorded for curiosity: where a text parts says nothing of its quality.",
                Values::whole, {b, aa},
                [](const ItemRecord& record, const ItemRecord&) -> std::optional<double> {
                  if (!record.first_divergent_token) return std::nullopt;
                  return static_cast<double>(*record.first_divergent_token);
                }),
  };
}

}  // namespace qpn8
