#include "evidence/audit_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>

#include "base/atomic_file.hpp"
#include "base/json_rows.hpp"
#include "evidence/audit_tables.hpp"
#include "evidence/markdown_table.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMarkdownRows = 40;
constexpr std::size_t kTerminalRows = 10;
constexpr std::size_t kNamedRows = 6;

Json to_json(const AuditRow& row) {
  return {{"name", row.name},
          {"role", row.role},
          {"k", row.k},
          {"n", row.n},
          {"m", row.m},
          {"pattern", to_string(row.pattern)},
          {"reference", to_string(row.reference)},
          {"route", row.route},
          {"relative_l2", row.measures.relative_l2},
          {"exact_fp16_fraction", row.measures.exact_fp16_fraction},
          {"max_ulp", row.measures.max_ulp},
          {"relative_l2_fp16", row.measures.relative_l2_fp16},
          {"outputs", row.measures.outputs},
          {"finite", row.measures.finite}};
}

Json to_json(const std::vector<AuditRow>& rows) {
  Json list = Json::array();
  for (const AuditRow& row : rows) list.push_back(to_json(row));
  return list;
}

Json to_json(const GateResult& gate) {
  Json checks = Json::array();
  for (const GateCheck& check : gate.checks) {
    checks.push_back(
        {{"name", check.name}, {"subject", check.subject}, {"passed", check.passed}, {"detail", check.detail}});
  }
  return {{"passed", gate.passed()}, {"checks", std::move(checks)}};
}

/// Columns as wide as their widest cell.
std::string aligned(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& cell : table.header) widths.push_back(cell.size());
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i + 1 < cells.size(); ++i) text += fmt::format("{:<{}}  ", cells[i], widths[i]);
    return text + cells.back() + "\n";
  };
  std::string text = line(table.header);
  for (const auto& row : table.rows) text += line(row);
  return text + "\n";
}

std::string fused_lines(const AuditResult& result, std::string_view mark) {
  std::string text;
  for (const FusedAdmission& answer : result.fused_admissions) {
    text +=
        fmt::format("{}{}: {} ({})\n", mark, answer.role, answer.admitted ? "admitted" : "not admitted", answer.reason);
  }
  return text;
}

bool passed(const AuditResult& result) { return result.broken().empty() && (!result.gate || result.gate->passed()); }

std::string gate_line(const GateResult& gate) {
  const std::size_t failed = gate.failures().size();
  return failed == 0 ? fmt::format("Gate: all {} checks passed.", gate.checks.size())
                     : fmt::format("Gate: {} of {} checks FAILED.", failed, gate.checks.size());
}

std::string fused_section(const AuditResult& result) {
  if (result.fused.empty()) return "";
  return "## Fused gate/up + SiLU\n\nThe fused form keeps gate and up in FP32; a dense FP16 route rounds both before "
         "it "
         "multiplies them. Here the product and silu(gate) * up are compared with that route (fallback) and with FP64. "
         "The fused form is nearer to FP64 than the fallback is, but it is not the fallback: a model on it gives other "
         "texts, and no bound of retained schedules holds.\n\n" +
         fused_lines(result, "- ") + "\n" +
         markdown_table(worst_rows(result.fused, AuditReference::fallback, result.bounds, kMarkdownRows)) +
         "Against FP64:\n\n" +
         markdown_table(worst_rows(result.fused, AuditReference::fp64, result.bounds, kTerminalRows));
}

}  // namespace

Json to_json(const AuditResult& result) {
  Json admissions = Json::array();
  for (const FusedAdmission& answer : result.fused_admissions) {
    admissions.push_back({{"role", answer.role}, {"admitted", answer.admitted}, {"reason", answer.reason}});
  }
  Json references = Json::object();
  for (const AuditReference reference : kAuditReferences)
    references[std::string(to_string(reference))] = meaning_of(reference);
  return {{"passed", passed(result)},
          {"bounds",
           {{"exact_fp16_fraction", result.bounds.exact_fp16_fraction}, {"relative_l2", result.bounds.relative_l2}}},
          {"rows_beyond_bounds", result.broken().size()},
          {"references", std::move(references)},
          {"rows", to_json(result.rows)},
          {"fused", to_json(result.fused)},
          {"fused_admissions", std::move(admissions)},
          {"gate", result.gate ? to_json(*result.gate) : Json(nullptr)},
          {"notes", result.notes},
          {"run", result.run},
          {"plan", result.plan}};
}

std::string to_markdown(const AuditResult& result) {
  std::string text =
      fmt::format("# Operator audit: {}\n\n{}\n", passed(result) ? "passed" : "NOT passed", bounds_line(result));
  if (result.gate) text += "\n" + gate_line(*result.gate) + "\n";
  text += "\n## What is compared\n\n";
  for (const AuditReference reference : kAuditReferences) {
    text += fmt::format("- **{}**: {}.\n", to_string(reference), meaning_of(reference));
  }
  text +=
      "\nExact FP16 is the share of results that are the reference's number once both are rounded to FP16, max ulp the "
      "most FP16 numbers between two. Relative L2 is of the numbers as the device delivers them, FP16 L2 of both "
      "rounded, "
      "where one flipped rounding in 400 is 1.5e-5, whatever caused it. The bounds are on exact FP16 and relative "
      "L2.\n\n" +
      markdown_table(audit_summary(result));
  for (const AuditReference reference : kAuditReferences) {
    const Table table = worst_rows(result.rows, reference, result.bounds, kMarkdownRows);
    text += fmt::format("## Worst rows against {}\n\n", to_string(reference)) + markdown_table(table);
  }
  text += fused_section(result);
  if (result.gate) text += "## Gate\n\n" + markdown_table(gate_table(*result.gate));
  if (!result.notes.empty()) text += "## Not measured\n\n";
  for (const std::string& note : result.notes) text += fmt::format("- {}\n", note);
  text += "\n## Run\n\n";
  Table run{{"", "value"}, {}};
  for (const auto& [key, value] : result.run.items()) {
    run.rows.push_back({key, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  return text + markdown_table(run) + "All rows are in audit.json.\n";
}

std::string to_text(const AuditResult& result) {
  std::string text = aligned(worst_rows(result.rows, AuditReference::fallback, result.bounds, kTerminalRows)) +
                     aligned(audit_summary(result));
  for (const AuditReference reference : kAuditReferences) {
    text += fmt::format("{:<9} {}\n", to_string(reference), meaning_of(reference));
  }
  text += "\n";
  if (!result.fused_admissions.empty()) text += "fused gate/up + SiLU\n" + fused_lines(result, "  ") + "\n";
  if (result.gate) text += aligned(gate_table(*result.gate)) + gate_line(*result.gate) + "\n";
  for (const std::string& note : result.notes) text += fmt::format("not measured: {}\n", note);
  return text + bounds_line(result) + "\n";
}

void write_audit(const std::filesystem::path& folder, const AuditResult& result) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(Error::bad_file, folder.string() + ": cannot be made a folder (" + error.message() + ")");
  write_file(folder / "audit.md", to_markdown(result));
  write_file(folder / "audit.json", dump_rows(to_json(result)));
}

namespace {

/// Of few outputs a flip or two more than the bound allows is chance.
std::string caveat(const AuditRow& row) {
  const std::int64_t enough = AuditOptions().least_outputs;
  if (row.measures.outputs >= enough) return "";
  return fmt::format(" (of {} outputs, too few to tell 0.3 % from chance; --outputs {} is enough)",
                     row.measures.outputs, enough);
}

}  // namespace

void require_passed(const AuditResult& result) {
  std::vector<std::string> faults;
  const std::vector<const AuditRow*> broken = result.broken();
  for (std::size_t i = 0; i < std::min(broken.size(), kNamedRows); ++i) {
    const AuditRow& row = *broken[i];
    faults.push_back(fmt::format("{} M = {} {}: exact FP16 fraction {:.5f}, relative L2 {:.3e}{}", row.name, row.m,
                                 to_string(row.pattern), row.measures.exact_fp16_fraction, row.measures.relative_l2,
                                 caveat(row)));
  }
  if (broken.size() > kNamedRows) faults.push_back(fmt::format("{} more rows", broken.size() - kNamedRows));
  if (result.gate) {
    for (const std::string& failure : result.gate->failures()) faults.push_back("gate: " + failure);
  }
  if (faults.empty()) return;
  throw Error(Error::check_failed,
              fmt::format("audit: {}; right is an exact FP16 fraction of at least {} and a relative L2 of at most {} "
                          "against the fallback, and a gate without a failure",
                          fmt::join(faults, "; "), result.bounds.exact_fp16_fraction, result.bounds.relative_l2));
}

}  // namespace qpn8
