#include "evidence/audit_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace qpn8 {
namespace {

std::string exact_percent(double fraction) { return fmt::format("{:.3f} %", fraction * 100); }
std::string small(double value) { return value == 0 ? "0" : fmt::format("{:.3e}", value); }

/// Of all rows of a kind.
struct Worst {
  std::int64_t rows = 0;
  double exact = 1;
  double relative_l2 = 0;
  double relative_l2_fp16 = 0;
  std::int64_t ulp = 0;

  void add(const Measures& measures) {
    ++rows;
    exact = std::min(exact, measures.exact_fp16_fraction);
    relative_l2 = std::max(relative_l2, measures.relative_l2);
    relative_l2_fp16 = std::max(relative_l2_fp16, measures.relative_l2_fp16);
    ulp = std::max(ulp, measures.max_ulp);
  }
};

/// The later the worse.
std::tuple<bool, double, double> badness(const AuditRow& row, const AuditBounds& bounds) {
  const Measures& measures = row.measures;
  if (row.reference != AuditReference::fallback) return {!measures.finite, measures.relative_l2, 0};
  return {!bounds.hold(measures), 1 - measures.exact_fp16_fraction, measures.relative_l2};
}

void add_summary(Table& table, const std::vector<AuditRow>& rows, std::string_view route) {
  for (const AuditReference reference : kAuditReferences) {
    Worst worst;
    for (const AuditRow& row : rows) {
      if (row.route == route && row.reference == reference) worst.add(row.measures);
    }
    if (worst.rows == 0) continue;
    table.rows.push_back({std::string(route), std::string(to_string(reference)), std::to_string(worst.rows),
                          exact_percent(worst.exact), small(worst.relative_l2), small(worst.relative_l2_fp16),
                          std::to_string(worst.ulp)});
  }
}

}  // namespace

std::string_view meaning_of(AuditReference reference) {
  switch (reference) {
    case AuditReference::fp64:
      return "the FP64 product of the numbers that are served (codes and scales, or stored weights): what a "
             "perfect kernel would give";
    case AuditReference::original:
      return "the FP32 product of the checkpoint's own weights: the distance is what 8 bits cost, whatever the kernel";
    default:
      return "the dense fallback in the same process (the served weight dequantised to FP32, then a dense product): "
             "the distance is what the kernel costs, whatever the weights";
  }
}

Table audit_summary(const AuditResult& result) {
  Table table{{"route", "against", "rows", "exact FP16, least", "relative L2, most", "FP16 L2, most", "ulp, most"}, {}};
  for (const std::string_view route : {"qpn8", "dense"}) add_summary(table, result.rows, route);
  add_summary(table, result.fused, "fused");
  return table;
}

Table worst_rows(const std::vector<AuditRow>& rows, AuditReference reference, const AuditBounds& bounds,
                 std::size_t most) {
  std::vector<const AuditRow*> chosen;
  for (const AuditRow& row : rows) {
    if (row.reference == reference) chosen.push_back(&row);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](const AuditRow* left, const AuditRow* right) {
    return badness(*left, bounds) > badness(*right, bounds);
  });
  Table table{{"projection", "K x N", "M", "activations", "route", "exact FP16", "relative L2", "FP16 L2", "max ulp"},
              {}};
  for (std::size_t i = 0; i < std::min(most, chosen.size()); ++i) {
    const AuditRow& row = *chosen[i];
    table.rows.push_back({row.name, fmt::format("{} x {}", row.k, row.n), std::to_string(row.m),
                          std::string(to_string(row.pattern)), row.route,
                          exact_percent(row.measures.exact_fp16_fraction), small(row.measures.relative_l2),
                          small(row.measures.relative_l2_fp16),
                          row.measures.finite ? std::to_string(row.measures.max_ulp) : "not finite"});
  }
  return table;
}

Table gate_table(const GateResult& gate) {
  Table table{{"check", "subject", "passed", "what was seen"}, {}};
  for (const bool passed : {false, true}) {
    for (const GateCheck& check : gate.checks) {
      if (check.passed == passed) {
        table.rows.push_back({check.name, check.subject, passed ? "yes" : "NO", check.detail});
      }
    }
  }
  return table;
}

std::string bounds_line(const AuditResult& result) {
  const auto bound = [&](const AuditRow& row) {
    return row.route == "qpn8" && row.reference == AuditReference::fallback;
  };
  const auto count = std::count_if(result.rows.begin(), result.rows.end(), bound);
  const std::size_t broken = result.broken().size();
  const std::string bounds = fmt::format("exact FP16 fraction >= {}, relative L2 <= {}",
                                         result.bounds.exact_fp16_fraction, result.bounds.relative_l2);
  if (broken == 0) return fmt::format("All {} rows of QPN8 against the fallback hold the bounds ({}).", count, bounds);
  return fmt::format("{} of {} rows of QPN8 against the fallback are beyond the bounds ({}).", broken, count, bounds);
}

}  // namespace qpn8
