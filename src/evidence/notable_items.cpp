#include "evidence/notable_items.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "evidence/ab_summary.hpp"
#include "evidence/statistics.hpp"

namespace qpn8 {
namespace {

/// Where most outputs are as long as before, any change lies outside the fences; one of a few words tells nothing.
constexpr double kLeastLengthChange = 10.0;  // tokens

const ItemRecord& a_of(const ItemRecords& records) { return records[static_cast<std::size_t>(ArmName::a)]; }
const ItemRecord& b_of(const ItemRecords& records) { return records[static_cast<std::size_t>(ArmName::b)]; }

std::optional<double> decode_ratio(const ItemRecords& records) {
  const double a = a_of(records).decode_tokens_per_s;
  const double b = b_of(records).decode_tokens_per_s;
  if (a <= 0 || b <= 0) return std::nullopt;
  return b / a;
}

double length_change(const ItemRecords& records) {
  return static_cast<double>(b_of(records).output_tokens - a_of(records).output_tokens);
}

/// Where values begin to lie far out. Without any values nothing does.
Interval far_fences(std::vector<double> values) {
  if (values.empty()) return {0.0, 0.0};
  std::sort(values.begin(), values.end());
  const double low = percentile(values, 25);
  const double high = percentile(values, 75);
  return {low - 3 * (high - low), high + 3 * (high - low)};
}

bool outside(double value, const Interval& interval) { return value < interval.low || value > interval.high; }

/// What went wrong in B's output and not in A's.
std::vector<std::string> new_faults(const ItemRecord& a, const ItemRecord& b) {
  std::vector<std::string> faults;
  if (b.invalid && !a.invalid) faults.emplace_back("B is invalid");
  if (b.truncated && !a.truncated) faults.emplace_back("B is truncated");
  if (b.repeated_4gram >= kRepetitiveRate && a.repeated_4gram < kRepetitiveRate) faults.emplace_back("B is repetitive");
  if (b.replacement_chars > a.replacement_chars) faults.emplace_back("B has more U+FFFD");
  if (b.nul_chars > a.nul_chars) faults.emplace_back("B has more NUL");
  return faults;
}

}  // namespace

std::vector<NotableItem> discordant_items(std::span<const ItemRecords> items) {
  std::vector<NotableItem> found;
  for (const ItemRecords& records : items) {
    const auto& a = a_of(records).correct;
    const auto& b = b_of(records).correct;
    if (!a || !b || *a == *b) continue;
    found.push_back({&records, *a ? "only A is right" : "only B is right"});
  }
  return found;
}

std::vector<NotableItem> outlying_items(std::span<const ItemRecords> items) {
  std::vector<double> ratios;
  std::vector<double> changes;
  for (const ItemRecords& records : items) {
    if (const auto ratio = decode_ratio(records)) ratios.push_back(*ratio);
    changes.push_back(length_change(records));
  }
  const Interval usual_ratio = far_fences(std::move(ratios));
  const Interval usual_change = far_fences(std::move(changes));

  std::vector<NotableItem> found;
  for (const ItemRecords& records : items) {
    std::vector<std::string> reasons = new_faults(a_of(records), b_of(records));
    const auto ratio = decode_ratio(records);
    if (ratio && outside(*ratio, usual_ratio)) reasons.push_back(fmt::format("decode ratio {:.2f}", *ratio));
    const double change = length_change(records);
    if (outside(change, usual_change) && std::abs(change) >= kLeastLengthChange)
      reasons.push_back(fmt::format("length {:+.0f} tokens", change));
    if (!reasons.empty()) found.push_back({&records, fmt::format("{}", fmt::join(reasons, ", "))});
  }
  return found;
}

}  // namespace qpn8
