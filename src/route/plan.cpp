#include "route/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

ContractStatus status_of(const Contract& contract, const Hardware& hardware, const Topology& topology,
                         const Rollback& rollback) {
  const std::optional<std::string> refusal = contract_refusal(contract, hardware, topology);
  const ContractSwitch decision = decide(rollback, contract);
  ContractStatus status;
  status.name = contract.name;
  status.default_on = contract.default_on;
  status.holds = !refusal;
  status.in_force = status.holds && decision.on;
  status.why = refusal ? *refusal : fmt::format("{} by {}", decision.on ? "on" : "off", decision.decided_by);
  status.workspace_bytes = contract.workspace_bytes;
  return status;
}

// The contracts of a plan, by whether they were turned off.
struct Pools {
  std::vector<Contract> not_off;
  std::vector<Contract> off;
  std::map<std::string, std::string> turned_off_by;  // contract -> ContractStatus::why
  bool any_in_force = false;
};

// What the hardware makes of the checkpoint's weights: GPUs before sm_80 have no BF16 and serve it as FP16.
TensorDesc as_served(const Hardware& hardware, TensorDesc tensor) {
  constexpr int kFirstWithBf16 = 80;
  const bool has_bf16 = hardware.kind == HardwareKind::cpu || hardware.compute_capability >= kFirstWithBf16;
  if (tensor.type == WeightType::bf16 && !has_bf16) tensor.type = WeightType::f16;
  return tensor;
}

PlannedProjection plan_one(const Hardware& hardware, const Topology& topology, const ProjectionDesc& projection,
                           const Pools& pools) {
  const TensorDesc served = as_served(hardware, projection.tensor);
  PlannedProjection planned;
  planned.name = projection.name;
  planned.tensor = projection.tensor;

  const auto answer = admit(hardware, topology, served, pools.not_off);
  if (const auto* admission = std::get_if<Admission>(&answer)) {
    planned.route = Route::qpn8;
    planned.reason = fmt::format("admitted by contract {}", admission->contract);
    planned.contract = admission->contract;
    planned.schedule = admission->schedule;
    planned.padded_n = admission->padded_n;
    return planned;
  }
  Refusal refusal = std::get<Refusal>(answer);
  const auto without_rollback = admit(hardware, topology, served, pools.off);
  if (const auto* admission = std::get_if<Admission>(&without_rollback)) {
    refusal = {fmt::format("contract {} is {}", admission->contract, pools.turned_off_by.at(admission->contract)),
               false, admission->contract};
  } else if (!pools.any_in_force && !pools.off.empty()) {
    refusal = std::get<Refusal>(without_rollback);
  }
  planned.reason = refusal.reason;
  planned.foreseen = refusal.foreseen;
  planned.contract = refusal.contract;
  return planned;
}

// One line, as every error; the reason first, since a hundred projections often share one.
void refuse_unforeseen(const std::vector<PlannedProjection>& projections, const std::string& source) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  std::size_t refused = 0;
  for (const PlannedProjection& projection : projections) {
    if (projection.route == Route::qpn8 || projection.foreseen) continue;
    ++refused;
    auto entry = std::find_if(by_reason.begin(), by_reason.end(),
                              [&](const auto& known) { return known.first == projection.reason; });
    if (entry == by_reason.end()) entry = by_reason.insert(entry, {projection.reason, {}});
    entry->second.push_back(projection.name);
  }
  if (refused == 0) return;
  std::string message = fmt::format("{}: {} of {} projections would run dense without a contract that excludes them",
                                    source, refused, projections.size());
  for (const auto& [reason, names] : by_reason) message += fmt::format("; {} ({})", reason, fmt::join(names, ", "));
  throw Error(Error::missing_capability, message);
}

}  // namespace

Plan::Plan(Hardware hardware, const Topology& topology, std::vector<ContractStatus> contracts,
           std::vector<PlannedProjection> projections)
    : hardware_(std::move(hardware)),
      topology_(topology),
      contracts_(std::move(contracts)),
      projections_(std::move(projections)) {
  for (std::size_t i = 0; i < projections_.size(); ++i) {
    check(by_name_.emplace(projections_[i].name, i).second, "projections have names of their own");
  }
}

const PlannedProjection& Plan::at(const std::string& name) const {
  const auto found = by_name_.find(name);
  check(found != by_name_.end(), "the plan covers every projection of the model");
  return projections_[found->second];
}

std::size_t Plan::count(Route route) const {
  return static_cast<std::size_t>(
      std::count_if(projections_.begin(), projections_.end(),
                    [&](const PlannedProjection& projection) { return projection.route == route; }));
}

std::int64_t Plan::workspace_bytes() const {
  if (count(Route::qpn8) == 0) return 0;
  std::int64_t bytes = 0;
  for (const ContractStatus& contract : contracts_) {
    if (contract.in_force) bytes = std::max(bytes, contract.workspace_bytes);
  }
  return bytes;
}

Plan make_plan(const Hardware& hardware, const Topology& topology, const std::vector<ProjectionDesc>& projections,
               const std::vector<Contract>& contracts, const Rollback& rollback) {
  Pools pools;
  std::vector<ContractStatus> statuses;
  for (const Contract& contract : contracts) {
    statuses.push_back(status_of(contract, hardware, topology, rollback));
    const ContractStatus& status = statuses.back();
    const bool turned_off = status.holds && !status.in_force;
    (turned_off ? pools.off : pools.not_off).push_back(contract);
    if (turned_off) pools.turned_off_by[status.name] = status.why;
    pools.any_in_force = pools.any_in_force || status.in_force;
  }
  std::vector<PlannedProjection> planned;
  planned.reserve(projections.size());
  for (const ProjectionDesc& projection : projections) {
    planned.push_back(plan_one(hardware, topology, projection, pools));
  }
  if (rollback.mode == Qpn8Mode::require) refuse_unforeseen(planned, rollback.mode_source);
  return {hardware, topology, std::move(statuses), std::move(planned)};
}

}  // namespace qpn8
