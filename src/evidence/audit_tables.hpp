#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/audit.hpp"
#include "evidence/report_tables.hpp"

namespace qpn8 {

// What the audit's reports for people are made of.

/// What a reference means and what the distance to it tells.
std::string_view meaning_of(AuditReference reference);

/// The worst figures of each route and reference, a row each.
Table audit_summary(const AuditResult& result);

/// Rows of one reference, the worst first, `most` of them. Worst is what is furthest beyond the bounds for the
/// fallback, and the largest relative L2 for the other references.
Table worst_rows(const std::vector<AuditRow>& rows, AuditReference reference, const AuditBounds& bounds,
                 std::size_t most);

/// The checks of the gate, failed ones first.
Table gate_table(const GateResult& gate);

/// "holds" or how many rows do not.
std::string bounds_line(const AuditResult& result);

}  // namespace qpn8
