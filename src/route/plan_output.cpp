#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/text_table.hpp"
#include "route/plan.hpp"

namespace qpn8 {
namespace {

using nlohmann::ordered_json;

std::string names_in_force(const Plan& plan) {
  std::vector<std::string> names;
  for (const ContractStatus& contract : plan.contracts()) {
    if (contract.in_force) names.push_back(contract.name);
  }
  if (names.empty()) return "no contract in force";
  return fmt::format("{} {}", names.size() == 1 ? "contract" : "contracts", fmt::join(names, ", "));
}

ordered_json to_json(const ContractStatus& contract) {
  return {{"name", contract.name},
          {"default", contract.default_on ? "on" : "off"},
          {"holds", contract.holds},
          {"in_force", contract.in_force},
          {"why", contract.why}};
}

ordered_json to_json(const PlannedProjection& projection) {
  const bool on_qpn8 = projection.route == Route::qpn8;
  ordered_json json = {{"name", projection.name},
                       {"role", projection.tensor.role},
                       {"layer_tp", projection.tensor.layer_tp},
                       {"k", projection.tensor.k},
                       {"n", projection.tensor.n},
                       {"groups", projection.tensor.groups},
                       {"route", on_qpn8 ? "qpn8" : "dense"},
                       {"reason", projection.reason},
                       {"contract", nullptr},
                       {"schedule", nullptr}};
  if (!projection.contract.empty()) json["contract"] = projection.contract;
  if (on_qpn8) {
    json["schedule"] = {{"split_k", projection.schedule.split_k},
                        {"accumulator_chains", projection.schedule.accumulator_chains},
                        {"prefetch", projection.schedule.prefetch}};
    json["padded_n"] = projection.padded_n;
  } else {
    json["foreseen"] = projection.foreseen;
  }
  return json;
}

std::string shape_of(const PlannedProjection& projection) {
  const TensorDesc& tensor = projection.tensor;
  std::string text = fmt::format("{}x{}", tensor.k, tensor.n);
  if (tensor.groups != 1) text = fmt::format("{} groups of {}", tensor.groups, text);
  if (projection.route == Route::qpn8 && projection.padded_n != tensor.n) {
    text += fmt::format(" padded to {}", projection.padded_n);
  }
  return text;
}

std::string remark_of(const PlannedProjection& projection) {
  if (projection.route == Route::dense) return projection.reason;
  return fmt::format("{} {}", projection.contract, to_string(projection.schedule));
}

std::string counts(const Plan& plan) {
  return fmt::format("qpn8: {} of {} projections on QPN8 ({}), {} dense", plan.count(Route::qpn8),
                     plan.projections().size(), names_in_force(plan), plan.count(Route::dense));
}

}  // namespace

std::string summary_line(const Plan& plan) { return counts(plan) + "; run 'qpn8 plan' for reasons"; }

ordered_json to_json(const Plan& plan) {
  ordered_json json = {{"hardware", to_string(plan.hardware())},
                       {"topology",
                        {{"tp", plan.topology().tp},
                         {"pp", plan.topology().pp},
                         {"max_sequences", plan.topology().max_sequences},
                         {"speculation", plan.topology().speculation}}},
                       {"contracts", ordered_json::array()},
                       {"projections", ordered_json::array()},
                       {"summary", {{"qpn8", plan.count(Route::qpn8)}, {"dense", plan.count(Route::dense)}}}};
  for (const ContractStatus& contract : plan.contracts()) json["contracts"].push_back(to_json(contract));
  for (const PlannedProjection& projection : plan.projections()) json["projections"].push_back(to_json(projection));
  return json;
}

std::string to_table(const Plan& plan) {
  std::vector<std::vector<std::string>> contracts = {{"CONTRACT", "DEFAULT", "IN FORCE", "WHY"}};
  for (const ContractStatus& contract : plan.contracts()) {
    contracts.push_back(
        {contract.name, contract.default_on ? "on" : "off", contract.in_force ? "yes" : "no", contract.why});
  }
  std::vector<std::vector<std::string>> projections = {
      {"PROJECTION", "ROLE", "TP", "K x N", "ROUTE", "CONTRACT AND SCHEDULE, OR WHY NOT"}};
  for (const PlannedProjection& projection : plan.projections()) {
    projections.push_back({projection.name, projection.tensor.role, std::to_string(projection.tensor.layer_tp),
                           shape_of(projection), projection.route == Route::qpn8 ? "qpn8" : "dense",
                           remark_of(projection)});
  }
  return text_table(contracts) + "\n" + text_table(projections) + "\n" + counts(plan) + "\n";
}

}  // namespace qpn8
