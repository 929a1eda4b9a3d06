#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "qpn8/contract.hpp"
#include "route/rollback.hpp"

namespace qpn8 {

/// A projection of a model, by the name that the plan prints ("model.layers.3.self_attn.qkv_proj").
struct ProjectionDesc {
  std::string name;
  TensorDesc tensor;
};

enum class Route : std::uint8_t { dense, qpn8 };

/// Where one projection runs, and why.
struct PlannedProjection {
  std::string name;
  TensorDesc tensor;
  Route route = Route::dense;
  std::string reason;         ///< dense: why not QPN8; qpn8: the contract that admits it
  bool foreseen = false;      ///< dense: a contract in force excludes the role by name
  std::string contract;       ///< qpn8: the admitting contract; dense: the one whose reason it is, or empty
  Schedule schedule;          ///< qpn8 only
  std::int64_t padded_n = 0;  ///< qpn8: n, or the width the weight is padded to
};

/// What became of one contract here.
struct ContractStatus {
  std::string name;
  bool default_on = true;
  bool holds = false;     ///< for this hardware and topology
  bool in_force = false;  ///< it holds and is on
  std::string why;        ///< why it does not hold; if it does, what turned it on or off
  std::int64_t workspace_bytes = 0;
};

/// The routes of all projections of a model on one rank. Nothing of it depends on which model that is.
class Plan {
 public:
  Plan(Hardware hardware, const Topology& topology, std::vector<ContractStatus> contracts,
       std::vector<PlannedProjection> projections);

  const Hardware& hardware() const { return hardware_; }
  const Topology& topology() const { return topology_; }
  const std::vector<ContractStatus>& contracts() const { return contracts_; }
  const std::vector<PlannedProjection>& projections() const { return projections_; }  ///< in the order of make_plan

  /// The projection of that name; none is our own bug.
  const PlannedProjection& at(const std::string& name) const;

  std::size_t count(Route route) const;

  /// Bytes of the one workspace that all QPN8 projections of a device share: the largest that a contract in force asks
  /// for, 0 if no projection is on QPN8.
  std::int64_t workspace_bytes() const;

 private:
  Hardware hardware_;
  Topology topology_;
  std::vector<ContractStatus> contracts_;
  std::vector<PlannedProjection> projections_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

/// Decides every projection. Under Qpn8Mode::require a fallback that no contract foresaw is Error::missing_capability
/// that lists all of them by reason. Pure. The projections' names differ from each other.
Plan make_plan(const Hardware& hardware, const Topology& topology, const std::vector<ProjectionDesc>& projections,
               const std::vector<Contract>& contracts, const Rollback& rollback);

/// "qpn8: 84 of 112 projections on QPN8 (contract cpu-avx512), 28 dense; run 'qpn8 plan' for reasons"
std::string summary_line(const Plan& plan);

/// The plan as `qpn8 plan --json` prints it and reports embed it; docs/contracts.md lists the keys.
nlohmann::ordered_json to_json(const Plan& plan);

/// The plan for people: the contracts, then a row per projection, then the counts of summary_line.
std::string to_table(const Plan& plan);

}  // namespace qpn8
