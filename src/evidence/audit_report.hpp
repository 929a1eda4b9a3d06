#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "evidence/audit.hpp"

namespace qpn8 {

/// The whole audit; docs/audit.md lists the keys.
nlohmann::ordered_json to_json(const AuditResult& result);

/// For a pull request: what was compared with what, the worst rows of each reference first, the fused form, the gate.
std::string to_markdown(const AuditResult& result);

/// The same for a terminal, shorter.
std::string to_text(const AuditResult& result);

/// Writes audit.md and audit.json, each under a temporary name first; makes the folder if there is none.
/// Error::bad_file names what cannot be written.
void write_audit(const std::filesystem::path& folder, const AuditResult& result);

/// Error::check_failed naming the rows beyond the bounds and the gate's failed checks; returns if there are none.
void require_passed(const AuditResult& result);

}  // namespace qpn8
