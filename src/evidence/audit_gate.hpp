#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "qpn8/contract.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8 {

/// One thing that the gate looked at.
struct GateCheck {
  std::string name;     ///< "fp64", "fp32", "fallback", "replay", "grouped", "excluded", "workspace shared",
                        ///< "workspace capacity"
  std::string subject;  ///< the projection, or the excluded role
  bool passed = false;
  std::string detail;  ///< what is wrong, or what was seen to hold
};

struct GateResult {
  std::vector<GateCheck> checks;

  bool passed() const;
  /// "NAME SUBJECT: DETAIL" of every check that failed.
  std::vector<std::string> failures() const;
};

/// What the gate is about: a device, and projections to try it with.
struct GateSubject {
  Backend& backend;
  /// The same device with another workspace. Whatever it throws is a failed check.
  std::function<std::unique_ptr<Backend>(std::size_t workspace_bytes)> with_workspace;
  std::vector<LinearSource> sources;  ///< on QPN8, at least one; without a bias
  std::span<const Contract> contracts;
  ThreadTeam& team;
  std::int64_t least_outputs = 16384;  ///< of checks by shares, as AuditOptions has it
};

/// Tries what a change to the source may break and an accuracy figure may hide: every product at M = 1 and 9 against
/// FP64, the FP32 product of the original weights and the dense fallback; a step that is run again with other inputs;
/// groups; roles that contracts exclude; projections that share a workspace, and a workspace that is too small.
///
/// It throws only if there is no source: whatever goes wrong in a check is that check's failure.
GateResult run_gate(const GateSubject& subject);

/// One source a distinct role and shape: a gate has to see each kernel and not each layer.
std::vector<std::size_t> distinct_shapes(std::span<const PlannedProjection> projections);

}  // namespace qpn8
