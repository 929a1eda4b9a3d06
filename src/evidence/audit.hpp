#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/audit_gate.hpp"
#include "evidence/audit_measures.hpp"
#include "evidence/audit_model.hpp"
#include "evidence/audit_patterns.hpp"
#include "qpn8/contract.hpp"

namespace qpn8 {

/// What an audited product is compared with.
enum class AuditReference : std::uint8_t {
  fp64,      ///< the FP64 product of the numbers that are served, codes and scales or stored numbers
  original,  ///< the FP32 product of the checkpoint's own weights
  fallback,  ///< the dense fallback in the same process: the served weight dequantised, then a dense product
};

inline constexpr std::array kAuditReferences = {AuditReference::fallback, AuditReference::fp64,
                                                AuditReference::original};

/// "fp64", "original", "fallback".
std::string_view to_string(AuditReference reference);

struct AuditOptions {
  std::vector<std::int64_t> rows = {1, 9};  ///< the numbers of tokens a step to audit
  /// A row of the table is measured over so many outputs at least, in as many steps as that takes: a share of 0.3 %
  /// cannot be told from 384 of them. Captured activations give as many as there are.
  std::int64_t least_outputs = 16384;
  std::uint64_t seed = 1;
};

/// One projection, pattern, number of rows and reference.
struct AuditRow {
  std::string name;
  std::string role;
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t m = 0;
  ActivationPattern pattern = ActivationPattern::gaussian;
  AuditReference reference = AuditReference::fp64;
  std::string route;  ///< "qpn8", "dense"; of the fused form "fused"
  Measures measures = {};
};

/// What the contracts say to the fused gate/up + SiLU form of a role.
struct FusedAdmission {
  std::string role;
  bool admitted = false;
  std::string reason;
};

struct AuditResult {
  nlohmann::ordered_json run;  ///< what was asked for
  nlohmann::ordered_json plan;
  AuditBounds bounds;
  std::vector<AuditRow> rows;
  std::vector<AuditRow> fused;  ///< the fused gate/up + SiLU form, n of them the gated outputs
  std::vector<FusedAdmission> fused_admissions;
  std::vector<std::string> notes;  ///< what was not measured, and why
  std::optional<GateResult> gate;

  /// The rows that have to hold the bounds and do not: QPN8 against the fallback, and a fused form that is admitted.
  std::vector<const AuditRow*> broken() const;
};

/// Called with the projections done so far, of how many.
using AuditProgress = std::function<void(std::int64_t done, std::int64_t total)>;

/// Audits every projection of the model; `run` and `gate` of the result are left to the caller.
void audit_projections(const AuditedModel& model, std::span<const Contract> contracts, const AuditOptions& options,
                       ThreadTeam& team, AuditResult& result, const AuditProgress& progress = nullptr);

}  // namespace qpn8
