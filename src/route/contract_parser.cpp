#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "qpn8/contract.hpp"
#include "qpn8/error.hpp"
#include "route/located_json.hpp"
#include "route/role_pattern.hpp"

namespace qpn8 {
namespace {

constexpr JsonLimits kLimits = {.bytes = std::size_t{1} << 20, .depth = 8};
constexpr std::int64_t kLargestSize = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostRanks = 1024;
constexpr std::int64_t kLeastWorkspace = std::int64_t{1} << 20;
constexpr std::int64_t kMostWorkspace = std::int64_t{1} << 34;

// A number, or "any": an absent key is an error, so that a forgotten one never widens a contract.
std::optional<std::int64_t> integer_or_any(const NodeReader& reader, const JsonNode& node, std::int64_t most) {
  if (const auto* word = std::get_if<std::string>(&node.scalar)) {
    if (*word == "any") return std::nullopt;
    reader.fail_value(node, fmt::format("an integer from 1 to {} or \"any\"", most));
  }
  return reader.integer(node, 1, most);
}

std::optional<int> ranks_or_any(const NodeReader& reader, const JsonNode& node) {
  const std::optional<std::int64_t> ranks = integer_or_any(reader, node, kMostRanks);
  if (!ranks) return std::nullopt;
  return static_cast<int>(*ranks);
}

std::string contract_name(const NodeReader& reader, const JsonNode& node) {
  const std::string& name = reader.text(node);
  const bool legal = std::all_of(name.begin(), name.end(),
                                 [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  // One variable a name: QPN8_CONTRACT_SM70_TP4_ONLINE must not have two readings.
  constexpr std::size_t longest = 64;
  if (!legal || name.front() == '-' || name.back() == '-' || name.find("--") != std::string::npos ||
      name.size() > longest) {
    reader.fail_value(node, "lower-case letters, digits and single dashes, at most 64");
  }
  return name;
}

std::string role_pattern(const NodeReader& reader, const JsonNode& node) {
  const std::string& role = reader.text(node);
  const bool legal = std::all_of(role.begin(), role.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' || c == '*';
  });
  if (!legal) reader.fail_value(node, "letters, digits, '_', '-', '.' and '*'");
  return role;
}

FusedActivation fused_activation(const NodeReader& reader, const JsonNode& node) {
  return reader.choice(node, {"none", "silu"}) == 0 ? FusedActivation::none : FusedActivation::silu;
}

void read_hardware(const NodeReader& reader, const JsonNode& node, Contract& contract) {
  for (const JsonNode& element : reader.elements(node)) {
    std::string name = reader.text(element);
    const bool and_newer = name.back() == '+';
    if (and_newer) name.pop_back();
    Hardware hardware;
    try {
      hardware = parse_hardware(name);
    } catch (const Error& error) {
      reader.fail(element, error.what());
    }
    if (!and_newer) {
      if (std::find(contract.hardware.begin(), contract.hardware.end(), hardware) != contract.hardware.end()) {
        reader.fail(element, fmt::format("hardware \"{}\" is given twice", name));
      }
      contract.hardware.push_back(hardware);
      continue;
    }
    if (hardware.kind != HardwareKind::cuda) reader.fail_value(element, "a '+' after CUDA hardware only");
    if (contract.compute_capability_at_least) reader.fail(element, "a second '+'; one covers everything newer");
    contract.compute_capability_at_least = hardware.compute_capability;
  }
  if (node.children.empty()) reader.fail(node, "\"hardware\" is empty, so the contract can never hold");
}

void read_topology(const NodeReader& reader, const JsonNode& node, Contract& contract) {
  reader.expect_object(node, "a topology", {"tp", "pp", "max_sequences", "speculation"});
  contract.tp = ranks_or_any(reader, member(node, "tp"));
  contract.pp = ranks_or_any(reader, member(node, "pp"));
  contract.max_sequences = static_cast<int>(reader.integer(member(node, "max_sequences"), 1, kLargestSize));
  contract.speculation = reader.boolean(member(node, "speculation"));
}

void read_weights(const NodeReader& reader, const JsonNode& node, Contract& contract) {
  reader.expect_object(node, "weights", {"types", "scales"});
  const JsonNode& types = member(node, "types");
  for (const JsonNode& element : reader.elements(types)) {
    contract.types.push_back(static_cast<WeightType>(reader.choice(element, {"f32", "f16", "bf16", "f8_e4m3"})));
  }
  const JsonNode& scales = member(node, "scales");
  for (const JsonNode& element : reader.elements(scales)) {
    contract.scales.push_back(static_cast<ScaleKind>(reader.choice(element, {"channel", "block-128x128"})));
  }
  for (const JsonNode* list : {&types, &scales}) {
    if (list->children.empty()) reader.fail(*list, fmt::format("\"{}\" is empty, so nothing is admitted", list->key));
  }
}

Schedule read_schedule(const NodeReader& reader, const JsonNode& node, std::optional<std::int64_t> k) {
  reader.expect_object(node, "a schedule", {"split_k", "accumulator_chains", "prefetch"});
  const JsonNode& split = member(node, "split_k");
  const JsonNode& chains = member(node, "accumulator_chains");
  Schedule schedule;
  schedule.split_k = static_cast<int>(reader.integer(split, 1, kLargestSize));
  schedule.accumulator_chains = static_cast<int>(reader.integer(chains, 1, 4));
  schedule.prefetch = reader.boolean(member(node, "prefetch"));
  if (schedule.accumulator_chains == 3) reader.fail_value(chains, "1, 2 or 4");
  if (k && *k / kKGroup % schedule.split_k != 0) {
    reader.fail(split, fmt::format("\"split_k\" is {}, but k / {} = {} is not a multiple of it", schedule.split_k,
                                   kKGroup, *k / kKGroup));
  }
  return schedule;
}

void check_multiple(const NodeReader& reader, const JsonNode& node, std::optional<std::int64_t> value,
                    std::int64_t divisor) {
  if (value && *value % divisor != 0) {
    reader.fail(node, fmt::format("\"{}\" is {}, not a multiple of {}", node.key, *value, divisor));
  }
}

AdmittedRow read_row(const NodeReader& reader, const JsonNode& node, const Contract& contract) {
  reader.expect_object(node, "a row", {"role", "layer_tp", "k", "n", "schedule"}, {"groups", "padded_n", "activation"});
  AdmittedRow row;
  row.role = role_pattern(reader, member(node, "role"));
  row.layer_tp = ranks_or_any(reader, member(node, "layer_tp"));
  row.k = integer_or_any(reader, member(node, "k"), kLargestSize);
  row.n = integer_or_any(reader, member(node, "n"), kLargestSize);
  if (const JsonNode* groups = find_member(node, "groups")) row.groups = integer_or_any(reader, *groups, kLargestSize);
  if (const JsonNode* activation = find_member(node, "activation")) {
    row.activation = fused_activation(reader, *activation);
  }
  if (row.layer_tp && contract.tp && *row.layer_tp > *contract.tp) {
    reader.fail(member(node, "layer_tp"),
                fmt::format("\"layer_tp\" is {}, but the contract's tp is {}", *row.layer_tp, *contract.tp));
  }
  check_multiple(reader, member(node, "k"), row.k, kKGroup);
  if (const JsonNode* padded = find_member(node, "padded_n")) {
    if (!row.n) reader.fail(*padded, R"("padded_n" needs an "n" that is a number)");
    row.padded_n = reader.integer(*padded, *row.n, kLargestSize);
    check_multiple(reader, *padded, row.padded_n, kTileColumns);
  } else {
    check_multiple(reader, member(node, "n"), row.n, kTileColumns);
  }
  row.schedule = read_schedule(reader, member(node, "schedule"), row.k);
  return row;
}

// Whether every tensor that `later` would admit is admitted by `earlier` before it.
bool covers(const AdmittedRow& earlier, const AdmittedRow& later) {
  const auto same_or_any = [](const auto& wide, const auto& narrow) { return !wide || wide == narrow; };
  const bool schedule_serves = later.k.has_value() ? *later.k / kKGroup % earlier.schedule.split_k == 0
                                                   : later.schedule.split_k % earlier.schedule.split_k == 0;
  return role_matches(earlier.role, later.role) && same_or_any(earlier.layer_tp, later.layer_tp) &&
         same_or_any(earlier.k, later.k) && same_or_any(earlier.n, later.n) &&
         same_or_any(earlier.groups, later.groups) && earlier.activation == later.activation && schedule_serves;
}

void read_rows(const NodeReader& reader, const JsonNode& node, Contract& contract) {
  const std::vector<JsonNode>& elements = reader.elements(node);
  for (const JsonNode& element : elements) {
    const AdmittedRow row = read_row(reader, element, contract);
    for (std::size_t i = 0; i < contract.rows.size(); ++i) {
      if (!covers(contract.rows[i], row)) continue;
      reader.fail(element, fmt::format("row \"{}\" never applies: the row at line {} admits all of it", row.role,
                                       elements[i].line));
    }
    contract.rows.push_back(row);
  }
  if (elements.empty()) reader.fail(node, "\"rows\" is empty, so nothing is admitted");
}

// An exclusion narrows a pattern's rows; a row that it takes away whole contradicts it.
bool contradicts(const ExcludedRole& excluded, const AdmittedRow& row) {
  const bool activation_meets = !excluded.activation || *excluded.activation == row.activation;
  return activation_meets && role_matches(excluded.role, row.role);
}

void read_excluded(const NodeReader& reader, const JsonNode& node, const JsonNode& rows, Contract& contract) {
  const std::vector<JsonNode>& elements = reader.elements(node);
  for (const JsonNode& element : elements) {
    reader.expect_object(element, "an exclusion", {"role", "reason"}, {"activation"});
    ExcludedRole excluded;
    excluded.role = role_pattern(reader, member(element, "role"));
    excluded.reason = reader.text(member(element, "reason"));
    if (const JsonNode* activation = find_member(element, "activation")) {
      excluded.activation = fused_activation(reader, *activation);
    }
    for (std::size_t i = 0; i < contract.excluded.size(); ++i) {
      if (contract.excluded[i].role != excluded.role || contract.excluded[i].activation != excluded.activation)
        continue;
      reader.fail(member(element, "role"),
                  fmt::format("role \"{}\" is excluded at line {} already", excluded.role, elements[i].line));
    }
    for (std::size_t i = 0; i < contract.rows.size(); ++i) {
      if (!contradicts(excluded, contract.rows[i])) continue;
      reader.fail(member(element, "role"), fmt::format("role \"{}\" is excluded here and admitted at line {}",
                                                       contract.rows[i].role, rows.children[i].line));
    }
    contract.excluded.push_back(excluded);
  }
}

void read_evidence(const NodeReader& reader, const JsonNode& node, Contract& contract) {
  reader.expect_object(node, "evidence", {}, {"file", "note"});
  if (const JsonNode* file = find_member(node, "file")) contract.evidence.file = reader.text(*file);
  if (const JsonNode* note = find_member(node, "note")) contract.evidence.note = reader.text(*note);
  if (node.children.empty()) reader.fail(node, R"("evidence" has neither a "file" nor a "note")");
}

}  // namespace

Contract parse_contract(std::string_view text, const std::string& file_name) {
  const NodeReader reader(file_name);
  const JsonNode root = parse_located_json(text, file_name, kLimits);
  reader.expect_object(root, "a contract",
                       {"name", "hardware", "topology", "weights", "rows", "excluded", "default", "evidence"},
                       {"workspace_bytes"});
  Contract contract;
  contract.name = contract_name(reader, member(root, "name"));
  read_hardware(reader, member(root, "hardware"), contract);
  read_topology(reader, member(root, "topology"), contract);
  read_weights(reader, member(root, "weights"), contract);
  if (const JsonNode* bytes = find_member(root, "workspace_bytes")) {
    contract.workspace_bytes = reader.integer(*bytes, kLeastWorkspace, kMostWorkspace);
  }
  read_rows(reader, member(root, "rows"), contract);
  read_excluded(reader, member(root, "excluded"), member(root, "rows"), contract);
  contract.default_on = reader.choice(member(root, "default"), {"on", "off"}) == 0;
  read_evidence(reader, member(root, "evidence"), contract);
  return contract;
}

}  // namespace qpn8
