#pragma once

#include <string>
#include <vector>

#include "evidence/ab_result.hpp"

namespace qpn8 {

// The tables of the reports, as texts in cells; Markdown and HTML set them.

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  ///< as long as the header each; the first cell names the row
};

/// What each arm's outputs are like: A, B, A/A.
Table arms_table(const AbResult& result);

/// What differs, B from A and, beside it, A/A from A.
Table paired_table(const AbResult& result);

/// What the command asked for.
Table run_table(const AbResult& result);

/// B's plan: projections of the same role, shape and fate counted in one row; no rows without a plan.
Table plan_table(const AbResult& result);

/// How the figures are defined, one sentence each.
std::vector<std::string> definitions();

}  // namespace qpn8
