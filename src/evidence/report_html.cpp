#include "evidence/report_html.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "evidence/html_text.hpp"
#include "evidence/notable_items.hpp"
#include "evidence/report_assets.hpp"
#include "evidence/report_plots.hpp"
#include "evidence/report_tables.hpp"

namespace qpn8 {
namespace {

/// A cell of figures, which may break before its parenthesis and nowhere else.
std::string html_figures(std::string_view cell) {
  std::string html;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const bool breaks = i + 1 < cell.size() && cell[i + 1] == '(';
    html += cell[i] == ' ' && !breaks ? std::string("&nbsp;") : html_text(cell.substr(i, 1));
  }
  return html;
}

/// Keeps a percent sign on the line of its number.
std::string with_units(std::string html) {
  for (std::size_t at = html.find(" %"); at != std::string::npos; at = html.find(" %", at))
    html.replace(at, 1, "&nbsp;");
  return html;
}

enum class Cells : std::uint8_t { text, figures };

std::string html_table(const Table& table, Cells cells) {
  std::string html = fmt::format(R"(<div class="scroll"><table class="{}"><thead><tr>)",
                                 cells == Cells::figures ? "figures-right" : "");
  for (const std::string& cell : table.header) html += "<th scope=\"col\">" + html_text(cell) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr><th scope=\"row\">" + with_units(html_text(row.front())) + "</th>";
    for (std::size_t i = 1; i < row.size(); ++i)
      html += "<td>" + (cells == Cells::figures ? html_figures(row[i]) : html_text(row[i])) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string number_or_none(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : "none"; }

std::string output_column(std::string_view name, std::string_view css, const ItemRecord& record) {
  const std::string_view mark = !record.correct ? "" : *record.correct ? " right" : " wrong";
  return fmt::format(
      "<div class=\"output {}\"><p><b>{}</b>{} &middot; value {} &middot; last number {} &middot; {} tokens &middot; "
      "{:.1f} "
      "tok/s &middot; {}</p><pre>{}</pre></div>\n",
      css, name, mark, number_or_none(record.value), number_or_none(record.last_number), record.output_tokens,
      record.decode_tokens_per_s, html_text(record.finish_reason), html_text(record.answer));
}

std::string html_items_section(std::string_view title, const std::vector<NotableItem>& items) {
  std::string html = fmt::format("<section><h2>{} <span class=\"count\">{}</span></h2>\n", title, items.size());
  if (items.empty()) html += "<p>None.</p>\n";
  for (const NotableItem& item : items) {
    const auto& [a, b, aa] = *item.records;
    html += fmt::format("<details><summary><b>{}</b> (seed {}): {}; expected {}, A {}, B {}</summary>\n",
                        html_text(a.id), a.seed, html_text(item.why), number_or_none(a.expected),
                        number_or_none(a.value), number_or_none(b.value));
    html += "<div class=\"outputs\">" + output_column("A", "a", a) + output_column("B", "b", b) + "</div></details>\n";
  }
  return html + "</section>\n";
}

std::string table_section(std::string_view title, const Table& table, Cells cells) {
  return fmt::format("<section><h2>{}</h2>\n", title) + html_table(table, cells) + "</section>\n";
}

std::string verdict_section(const Verdict& verdict) {
  std::string html = fmt::format(
      "<section class=\"verdict {}\"><p class=\"badges\"><span class=\"badge quality\">{}</span> <span class=\"badge "
      "speed\">{}</span></p><p class=\"recommendation\">{}.</p>\n<ul>",
      to_string(verdict.quality), to_string(verdict.quality), to_string(verdict.speed),
      html_text(verdict.recommendation));
  for (const std::string& reason : verdict.reasons) html += "<li>" + html_text(reason) + ".</li>\n";
  return html + "</ul></section>\n";
}

std::string figures_section(const AbResult& result) {
  std::string html = "<section><h2>Plots</h2>\n<div class=\"figures\">\n";
  for (const Figure& figure : report_figures(result)) {
    html += fmt::format("<figure><h3>{}</h3>{}<figcaption>{}</figcaption></figure>\n", html_text(figure.title),
                        figure.svg, html_text(figure.caption));
  }
  return html + "</div></section>\n";
}

std::string definitions_section() {
  std::string html = "<section><h2>Definitions</h2>\n<ul>";
  for (const std::string& definition : definitions()) html += "<li>" + html_text(definition) + "</li>\n";
  return html + "</ul></section>\n";
}

}  // namespace

std::string to_html(const AbResult& result) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>qpn8 A/B</title>\n<style>\n";
  html += report_style();
  html += "</style></head>\n<body><main>\n<h1>A/B: is B as good as A, and faster?</h1>\n";
  html += verdict_section(result.verdict);
  html += "<div class=\"pair\">" + table_section("Arms", arms_table(result), Cells::figures) +
          table_section("Differences", paired_table(result), Cells::figures) + "</div>\n";
  html += figures_section(result);
  html += html_items_section("Items that one arm alone got right", discordant_items(result.items));
  html += html_items_section("Outlying items", outlying_items(result.items));
  html += table_section("Run", run_table(result), Cells::text);
  const Table plan = plan_table(result);
  if (!plan.rows.empty()) html += table_section("Plan of B", plan, Cells::text);
  html += definitions_section();
  return html + "</main></body></html>\n";
}

}  // namespace qpn8
