#include "evidence/markdown_table.hpp"

#include <vector>

namespace qpn8 {
namespace {

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + markdown_text(cell) + " |";
  return line + "\n";
}

}  // namespace

std::string markdown_text(std::string_view text) {
  static constexpr std::string_view kMarks = "\\|`*_<>[]#~$";
  std::string safe;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == '\t' || c == '\0') {
      safe += ' ';
    } else {
      if (kMarks.find(c) != std::string_view::npos) safe += '\\';
      safe += c;
    }
  }
  return safe;
}

std::string markdown_table(const Table& table) {
  std::string text = markdown_row(table.header) + "|";
  for (std::size_t i = 0; i < table.header.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& row : table.rows) text += markdown_row(row);
  return text + "\n";
}

}  // namespace qpn8
