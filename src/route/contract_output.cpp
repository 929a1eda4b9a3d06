#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "route/contract_file.hpp"

namespace qpn8 {
namespace {

using nlohmann::ordered_json;

template <class Number>
ordered_json number_or_any(const std::optional<Number>& number) {
  return number ? ordered_json(*number) : ordered_json("any");
}

const char* on_or_off(bool on) { return on ? "on" : "off"; }

ordered_json hardware_json(const Contract& contract) {
  ordered_json names = ordered_json::array();
  for (const Hardware& hardware : contract.hardware) names.push_back(to_string(hardware));
  if (contract.compute_capability_at_least)
    names.push_back(fmt::format("sm{}+", *contract.compute_capability_at_least));
  return names;
}

ordered_json weights_of(const Contract& contract) {
  ordered_json types = ordered_json::array();
  for (const WeightType type : contract.types) types.push_back(to_string(type));
  ordered_json scales = ordered_json::array();
  for (const ScaleKind kind : contract.scales)
    scales.push_back(kind == ScaleKind::channel ? "channel" : "block-128x128");
  return {{"types", types}, {"scales", scales}};
}

ordered_json row_of(const AdmittedRow& row) {
  ordered_json json = {{"role", row.role},
                       {"layer_tp", number_or_any(row.layer_tp)},
                       {"k", number_or_any(row.k)},
                       {"n", number_or_any(row.n)}};
  if (row.padded_n) json["padded_n"] = *row.padded_n;
  json["groups"] = number_or_any(row.groups);
  if (row.activation != FusedActivation::none) json["activation"] = to_string(row.activation);
  json["schedule"] = {{"split_k", row.schedule.split_k},
                      {"accumulator_chains", row.schedule.accumulator_chains},
                      {"prefetch", row.schedule.prefetch}};
  return json;
}

ordered_json exclusion_of(const ExcludedRole& excluded) {
  ordered_json json = {{"role", excluded.role}};
  if (excluded.activation) json["activation"] = to_string(*excluded.activation);
  json["reason"] = excluded.reason;
  return json;
}

}  // namespace

std::string to_text(const Contract& contract) {
  ordered_json json = {{"name", contract.name},
                       {"hardware", hardware_json(contract)},
                       {"topology",
                        {{"tp", number_or_any(contract.tp)},
                         {"pp", number_or_any(contract.pp)},
                         {"max_sequences", contract.max_sequences},
                         {"speculation", contract.speculation}}},
                       {"weights", weights_of(contract)},
                       {"workspace_bytes", contract.workspace_bytes},
                       {"default", on_or_off(contract.default_on)},
                       {"rows", ordered_json::array()},
                       {"excluded", ordered_json::array()},
                       {"evidence", ordered_json::object()}};
  for (const AdmittedRow& row : contract.rows) json["rows"].push_back(row_of(row));
  for (const ExcludedRole& excluded : contract.excluded) json["excluded"].push_back(exclusion_of(excluded));
  if (!contract.evidence.file.empty()) json["evidence"]["file"] = contract.evidence.file;
  if (!contract.evidence.note.empty()) json["evidence"]["note"] = contract.evidence.note;
  return json.dump(2) + "\n";
}

}  // namespace qpn8
