#include "evidence/report_markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "evidence/markdown_table.hpp"
#include "evidence/notable_items.hpp"
#include "evidence/report_tables.hpp"

namespace qpn8 {
namespace {

constexpr std::size_t kMostItems = 30;  ///< a pull request is no place for more; the HTML report has them all
constexpr std::size_t kTextCharacters = 160;

/// The end of a text, where its answer is, cut between UTF-8 characters.
std::string_view text_end(std::string_view text) {
  if (text.size() <= kTextCharacters) return text;
  std::size_t begin = text.size() - kTextCharacters;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  return text.substr(begin);
}

std::string number_or_dash(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : "-"; }

std::string markdown_items_section(std::string_view title, const std::vector<NotableItem>& items) {
  std::string text = fmt::format("## {}\n\n", title);
  if (items.empty()) return text + "None.\n\n";
  Table table{{"item", "why", "expected", "A", "B", "A's text ends", "B's text ends"}, {}};
  for (std::size_t i = 0; i < std::min(items.size(), kMostItems); ++i) {
    const auto& [a, b, aa] = *items[i].records;
    table.rows.push_back({fmt::format("{} (seed {})", a.id, a.seed), items[i].why, number_or_dash(a.expected),
                          number_or_dash(a.value), number_or_dash(b.value), std::string(text_end(a.answer)),
                          std::string(text_end(b.answer))});
  }
  text += markdown_table(table);
  if (items.size() > kMostItems) text += fmt::format("{} more are in report.html.\n\n", items.size() - kMostItems);
  return text;
}

}  // namespace

std::string to_markdown(const AbResult& result) {
  const Verdict& verdict = result.verdict;
  std::string text = fmt::format("# A/B: {}, {}\n\n{}.\n\n", to_string(verdict.quality), to_string(verdict.speed),
                                 markdown_text(verdict.recommendation));
  for (const std::string& reason : verdict.reasons) text += fmt::format("- {}\n", markdown_text(reason));
  text += "\n## Arms\n\n" + markdown_table(arms_table(result));
  text += "## Differences\n\n" + markdown_table(paired_table(result));
  text += markdown_items_section("Items that one arm alone got right", discordant_items(result.items));
  text += markdown_items_section("Outlying items", outlying_items(result.items));
  text += "## Run\n\n" + markdown_table(run_table(result));
  const Table plan = plan_table(result);
  if (!plan.rows.empty()) text += "## Plan of B\n\n" + markdown_table(plan);
  text += "## Definitions\n\n";
  for (const std::string& definition : definitions()) text += fmt::format("- {}\n", markdown_text(definition));
  return text;
}

}  // namespace qpn8
