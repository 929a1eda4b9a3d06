#pragma once

#include <string>
#include <vector>

namespace qpn8 {

/// How a column of a table is set.
enum class Align : unsigned char { left, right };

/// Rows of cells as lines, columns as wide as their widest cell and two spaces apart; the last cell of a row is not
/// padded on its right. Columns beyond `align` are set left.
std::string text_table(const std::vector<std::vector<std::string>>& rows, const std::vector<Align>& align = {});

}  // namespace qpn8
