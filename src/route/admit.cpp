#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "qpn8/contract.hpp"
#include "route/role_pattern.hpp"

namespace qpn8 {
namespace {

using Reasons = std::vector<std::string>;

std::string joined(const Reasons& reasons) { return fmt::format("{}", fmt::join(reasons, "; ")); }

std::string to_string(ScaleKind kind) { return kind == ScaleKind::channel ? "channel" : "block-128x128"; }

template <class T>
std::string alternatives(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : " or ") + to_string(value);
  return text;
}

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool runs_on(const Contract& contract, const Hardware& hardware) {
  const bool new_enough = hardware.kind == HardwareKind::cuda && contract.compute_capability_at_least &&
                          hardware.compute_capability >= *contract.compute_capability_at_least;
  return new_enough || contains(contract.hardware, hardware);
}

std::string hardware_of(const Contract& contract) {
  std::string text = alternatives(contract.hardware);
  if (contract.compute_capability_at_least) {
    text += fmt::format("{}sm{} or newer", text.empty() ? "" : " or ", *contract.compute_capability_at_least);
  }
  return text;
}

Reasons topology_refusals(const Contract& contract, const Topology& topology) {
  Reasons reasons;
  const auto expect_ranks = [&](const char* name, int ranks, std::optional<int> wanted) {
    if (wanted && *wanted != ranks) {
      reasons.push_back(fmt::format("{} is {}, the contract holds for {}", name, ranks, *wanted));
    }
  };
  expect_ranks("tp", topology.tp, contract.tp);
  expect_ranks("pp", topology.pp, contract.pp);
  if (topology.max_sequences > contract.max_sequences) {
    reasons.push_back(fmt::format("{} sequences, the contract holds for {}{}", topology.max_sequences,
                                  contract.max_sequences == 1 ? "" : "up to ", contract.max_sequences));
  }
  if (topology.speculation && !contract.speculation) {
    reasons.emplace_back("speculation is on, the contract holds without it");
  }
  return reasons;
}

Reasons weight_refusals(const Contract& contract, const TensorDesc& tensor) {
  Reasons reasons;
  if (!contains(contract.types, tensor.type)) {
    reasons.push_back(
        fmt::format("weights are {}, the contract admits {}", to_string(tensor.type), alternatives(contract.types)));
  }
  // No layout serves another block, so no contract can ask for one.
  const bool other_block =
      tensor.scales == ScaleKind::block && (tensor.block_n != kScaleBlock || tensor.block_k != kScaleBlock);
  if (other_block || !contains(contract.scales, tensor.scales)) {
    const std::string scales =
        other_block ? fmt::format("block-{}x{}", tensor.block_n, tensor.block_k) : to_string(tensor.scales);
    reasons.push_back(fmt::format("scales are {}, the contract admits {}", scales, alternatives(contract.scales)));
  }
  return reasons;
}

Reasons row_refusals(const AdmittedRow& row, const TensorDesc& tensor) {
  Reasons reasons;
  if (row.activation != tensor.activation) {
    reasons.push_back(fmt::format("fused activation is {}, the contract admits {} with {}",
                                  to_string(tensor.activation), tensor.role, to_string(row.activation)));
  }
  if (row.layer_tp && *row.layer_tp != tensor.layer_tp) {
    reasons.push_back(
        fmt::format("layer TP is {}, the contract admits {} at {}", tensor.layer_tp, tensor.role, *row.layer_tp));
  }
  const auto expect_size = [&](const char* name, std::int64_t size, std::optional<std::int64_t> wanted) {
    if (wanted && *wanted != size) {
      reasons.push_back(fmt::format("{} is {}, the contract admits {}", name, size, *wanted));
    }
  };
  expect_size("K", tensor.k, row.k);
  expect_size("N", tensor.n, row.n);
  expect_size("groups", tensor.groups, row.groups);
  if (!reasons.empty()) return reasons;

  if (tensor.k <= 0 || tensor.n <= 0) {
    reasons.push_back(fmt::format("K={} N={}: the projection is empty", tensor.k, tensor.n));
  } else if (std::string shape = shape_refusal(tensor.k, row.padded_n.value_or(tensor.n)); !shape.empty()) {
    reasons.push_back(std::move(shape));
  } else if (tensor.k / kKGroup % row.schedule.split_k != 0) {
    reasons.push_back(fmt::format("K={} N={}: K / {} = {} is not a multiple of the schedule's split_k {}", tensor.k,
                                  tensor.n, kKGroup, tensor.k / kKGroup, row.schedule.split_k));
  }
  return reasons;
}

// What one contract says to a projection, hardware and topology left aside.
struct Answer {
  std::optional<Admission> admission;
  Reasons reasons;          // empty if admitted
  bool names_role = false;  // a row or an exclusion is about this role
  bool excludes = false;
};

Answer ask(const Contract& contract, const TensorDesc& tensor) {
  for (const ExcludedRole& excluded : contract.excluded) {
    if (!role_matches(excluded.role, tensor.role)) continue;
    if (excluded.activation && *excluded.activation != tensor.activation) continue;
    return {std::nullopt, {fmt::format("role {}: {}", tensor.role, excluded.reason)}, true, true};
  }
  std::optional<Reasons> closest;
  for (const AdmittedRow& row : contract.rows) {
    if (!role_matches(row.role, tensor.role)) continue;
    const Reasons reasons = row_refusals(row, tensor);
    if (reasons.empty()) {
      closest = weight_refusals(contract, tensor);
      if (!closest->empty()) break;
      return {Admission{contract.name, row.schedule, row.padded_n.value_or(tensor.n)}, {}, true, false};
    }
    if (!closest || reasons.size() < closest->size()) closest = reasons;
  }
  if (!closest) {
    return {std::nullopt, {fmt::format("role {}: contract {} does not list it", tensor.role, contract.name)}};
  }
  return {std::nullopt, *closest, true, false};
}

// How near a refusing contract came; smaller is nearer, and of equals the first contract speaks.
std::tuple<int, std::size_t> distance(const Answer& answer, const Reasons& topology) {
  if (topology.empty()) return {answer.names_role ? 0 : 2, answer.reasons.size()};
  const bool would_admit_role = answer.names_role && !answer.excludes;
  return {would_admit_role ? 1 : 3, topology.size() + answer.reasons.size()};
}

std::string no_hardware(const Hardware& hardware, const std::vector<Contract>& contracts) {
  if (contracts.empty()) return "there is no contract";
  std::string known;
  for (const Contract& contract : contracts) {
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", contract.name, hardware_of(contract));
  }
  return fmt::format("no contract holds for {}; contracts are: {}", to_string(hardware), known);
}

}  // namespace

std::string to_string(WeightType type) {
  constexpr std::array<const char*, 5> names = {"f32", "f16", "bf16", "f8_e4m3", "f4_e2m1"};
  return names.at(static_cast<std::size_t>(type));
}

std::string to_string(FusedActivation activation) { return activation == FusedActivation::none ? "none" : "silu"; }

std::optional<std::string> contract_refusal(const Contract& contract, const Hardware& hardware,
                                            const Topology& topology) {
  if (!runs_on(contract, hardware)) {
    return fmt::format("hardware is {}, the contract holds for {}", to_string(hardware), hardware_of(contract));
  }
  const Reasons reasons = topology_refusals(contract, topology);
  if (reasons.empty()) return std::nullopt;
  return joined(reasons);
}

std::variant<Admission, Refusal> admit(const Hardware& hardware, const Topology& topology, const TensorDesc& tensor,
                                       const std::vector<Contract>& contracts) {
  std::optional<Refusal> closest;
  std::tuple<int, std::size_t> closest_distance;
  for (const Contract& contract : contracts) {
    if (!runs_on(contract, hardware)) continue;
    const Reasons topology_reasons = topology_refusals(contract, topology);
    const Answer answer = ask(contract, tensor);
    if (topology_reasons.empty() && answer.admission) return *answer.admission;
    const auto here = distance(answer, topology_reasons);
    if (closest && here >= closest_distance) continue;
    closest_distance = here;
    closest = topology_reasons.empty() ? Refusal{joined(answer.reasons), answer.excludes, contract.name}
                                       : Refusal{joined(topology_reasons), false, contract.name};
  }
  if (closest) return *closest;
  return Refusal{no_hardware(hardware, contracts), false, ""};
}

}  // namespace qpn8
