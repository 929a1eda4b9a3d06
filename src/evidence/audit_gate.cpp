#include "evidence/audit_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>
#include <tuple>

#include "evidence/audit_gate_checks.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// Runs a check; what it returns is what is wrong, empty if nothing is.
template <class Check>
void run_check(GateResult& result, std::string name, const std::string& subject, const std::string& holds,
               const Check& check) {
  std::string fault;
  try {
    fault = check();
  } catch (const std::exception& error) {
    fault = error.what();
  }
  result.checks.push_back({std::move(name), subject, fault.empty(), fault.empty() ? holds : fault});
}

}  // namespace

bool GateResult::passed() const {
  return std::all_of(checks.begin(), checks.end(), [](const GateCheck& check) { return check.passed; });
}

std::vector<std::string> GateResult::failures() const {
  std::vector<std::string> failures;
  for (const GateCheck& check : checks) {
    if (!check.passed) failures.push_back(fmt::format("{} {}: {}", check.name, check.subject, check.detail));
  }
  return failures;
}

GateResult run_gate(const GateSubject& subject) {
  if (subject.sources.empty()) {
    throw Error(Error::missing_capability, "gate: no projection runs on QPN8, so there is nothing to try");
  }
  GateResult result;
  for (std::size_t i = 0; i < subject.sources.size(); ++i) {
    const LinearSource& source = subject.sources[i];
    const std::string& name = source.plan->name;
    run_check(result, "fp64", name, "M = 1 and 9, every channel", [&] { return fp64_fault(subject, source); });
    run_check(result, "fp32", name, "M = 1 and 9, within what 8 bits cost",
              [&] { return fp32_fault(subject, source); });
    run_check(result, "fallback", name, "M = 1 and 9, within the bounds of retained schedules",
              [&] { return fallback_fault(subject, source); });
    run_check(result, "replay", name, "M = 1 and 9, other inputs give other and the same ones the same bits",
              [&] { return replay_fault(subject, i); });
  }
  run_check(result, "grouped", grouped_subject(subject), "M = 1 and 9, each group as if it were alone",
            [&] { return grouped_fault(subject); });
  for (const char* role : kExcludedRoles) {
    run_check(result, "excluded", role, "refused by name, and served dense: the original weights' product",
              [&] { return excluded_fault(subject, role); });
  }
  run_check(result, "workspace shared", fmt::format("{} projections", subject.sources.size()),
            "M = 9 and 17, bits as before other projections used it", [&] { return shared_workspace_fault(subject); });
  run_check(result, "workspace capacity", fmt::format("{} projections", subject.sources.size()),
            "one that is too small is refused and not overrun", [&] { return small_workspace_fault(subject); });
  return result;
}

std::vector<std::size_t> distinct_shapes(std::span<const PlannedProjection> projections) {
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> seen;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < projections.size(); ++i) {
    const PlannedProjection& projection = projections[i];
    if (projection.route != Route::qpn8) continue;
    if (seen.emplace(projection.tensor.role, projection.tensor.k, projection.tensor.n).second) chosen.push_back(i);
  }
  return chosen;
}

}  // namespace qpn8
