#include "base/text_table.hpp"

#include <algorithm>
#include <cstddef>

namespace qpn8 {

std::string text_table(const std::vector<std::vector<std::string>>& rows, const std::vector<Align>& align) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      const bool right = i < align.size() && align[i] == Align::right;
      if (right) text += gap;
      text += row[i];
      if (i + 1 == row.size()) break;
      if (!right) text += gap;
      text += "  ";
    }
    text += '\n';
  }
  return text;
}

}  // namespace qpn8
