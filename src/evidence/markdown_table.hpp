#pragma once

#include <string>
#include <string_view>

#include "evidence/report_tables.hpp"

namespace qpn8 {

/// The text as Markdown that shows it literally in one line: no mark or line break of its own has an effect.
std::string markdown_text(std::string_view text);

/// A table in Markdown, an empty line behind it. Cells are taken literally.
std::string markdown_table(const Table& table);

}  // namespace qpn8
