// Checks of what lies around a product: groups, excluded roles, the workspace.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <variant>

#include "base/check.hpp"
#include "evidence/audit_diagnosis.hpp"
#include "evidence/audit_gate_checks.hpp"
#include "evidence/audit_measures.hpp"
#include "evidence/audit_patterns.hpp"
#include "evidence/audit_product.hpp"
#include "evidence/audit_weight.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

constexpr std::uint64_t kLayoutSeed = 0x6709;
constexpr std::int64_t kGroups = 2;
constexpr std::size_t kTinyWorkspace = 1024;
// Of an FP32 sum, and of FP16 outputs where a device has those; a quantised weight is fifty times as far off.
constexpr double kSameWeightsL2 = 5e-4;

Matrix<float> layout_input(std::int64_t rows, std::int64_t k, std::uint64_t seed = kLayoutSeed) {
  return synthetic_activations(ActivationPattern::gaussian, rows, k, seed);
}

const LinearSource* groupable(const GateSubject& subject) {
  const auto found = std::find_if(subject.sources.begin(), subject.sources.end(), [](const LinearSource& source) {
    return source.plan->tensor.n % (kGroups * kTileColumns) == 0;
  });
  return found == subject.sources.end() ? nullptr : &*found;
}

/// The rows [first, first + count) of stacked parts.
std::vector<WeightPart> slice(const std::vector<WeightPart>& parts, std::int64_t first, std::int64_t count) {
  std::vector<WeightPart> slice;
  for (WeightPart part : parts) {
    const std::int64_t skipped = std::min(first, part.rows);
    const std::int64_t taken = std::min(count, part.rows - skipped);
    first -= skipped;
    count -= taken;
    part.first_row += skipped;
    part.rows = taken;
    if (taken > 0) slice.push_back(part);
  }
  return slice;
}

/// One group: a packed matrix of its own.
struct Group {
  PlannedProjection plan;
  LinearSource source;
  std::unique_ptr<Linear> weight;
};

std::vector<Group> load_groups(Backend& backend, const LinearSource& whole) {
  std::vector<Group> groups(kGroups);
  const std::int64_t n = whole.plan->tensor.n / kGroups;
  for (std::int64_t g = 0; g < kGroups; ++g) {
    Group& group = groups[static_cast<std::size_t>(g)];
    group.plan = *whole.plan;
    group.plan.name += fmt::format(" group {}", g);
    group.plan.tensor.n = n;
    group.plan.padded_n = n;
    group.source = whole;
    group.source.plan = &group.plan;
    group.source.parts = slice(whole.parts, g * n, n);
    group.weight = backend.load_linear(group.source);
  }
  return groups;
}

/// y[:, group g] = x[:, group g] W_g^T, groups side by side in both, read and written in place.
Matrix<float> grouped_product(Backend& backend, const std::vector<Group>& groups, const Matrix<float>& x) {
  const std::int64_t k = groups.front().weight->k();
  const std::int64_t n = groups.front().weight->n();
  const auto count = static_cast<std::int64_t>(groups.size());
  const OwnedTensor input = backend.allocate(backend.activation_type(), x.rows(), count * k);
  const OwnedTensor output = backend.allocate(backend.activation_type(), x.rows(), count * n);
  Matrix<float> poison(x.rows(), count * n);
  std::fill(poison.values().begin(), poison.values().end(), std::nanf(""));
  write_floats(backend, input.tensor, x.view());
  write_floats(backend, output.tensor, poison.view());
  for (std::int64_t g = 0; g < count; ++g) {
    backend.linear(*groups[static_cast<std::size_t>(g)].weight, input.tensor.col_range(g * k, k),
                   output.tensor.col_range(g * n, n));
  }
  return read_floats(backend, output.tensor);
}

Matrix<float> columns(const Matrix<float>& matrix, std::int64_t first, std::int64_t count) {
  Matrix<float> part(matrix.rows(), count);
  for (std::int64_t t = 0; t < matrix.rows(); ++t) {
    std::copy_n(matrix.view().row(t).data() + first, count, part.view().row(t).data());
  }
  return part;
}

/// The machine and the ranks that a contract is for.
Hardware hardware_of(const Contract& contract) {
  if (!contract.hardware.empty()) return contract.hardware.front();
  Hardware hardware;
  hardware.kind = HardwareKind::cuda;
  hardware.compute_capability = contract.compute_capability_at_least.value_or(0);
  return hardware;
}

Topology topology_of(const Contract& contract) {
  return {.tp = contract.tp.value_or(1),
          .pp = contract.pp.value_or(1),
          .max_sequences = contract.max_sequences,
          .speculation = contract.speculation};
}

bool excludes(const Contract& contract, const std::string& role) {
  return std::any_of(contract.excluded.begin(), contract.excluded.end(),
                     [&](const ExcludedRole& excluded) { return excluded.role == role && !excluded.activation; });
}

/// The refusal of a role by the contracts that exclude it, each on its own machine; throws if one admits it.
std::string refusal_of(const GateSubject& subject, const std::string& role) {
  std::string reason;
  for (const Contract& contract : subject.contracts) {
    if (!excludes(contract, role)) continue;
    TensorDesc tensor = subject.sources.front().plan->tensor;
    tensor.role = role;
    const auto answer = admit(hardware_of(contract), topology_of(contract), tensor, {contract});
    const auto* refusal = std::get_if<Refusal>(&answer);
    if (refusal == nullptr || !refusal->foreseen) {
      throw Error(Error::check_failed,
                  fmt::format("contract {} excludes it, and yet it is not refused", contract.name));
    }
    reason = refusal->reason;
  }
  return reason;
}

}  // namespace

std::string grouped_subject(const GateSubject& subject) {
  const LinearSource* source = groupable(subject);
  return fmt::format("{} in {} groups", (source != nullptr ? *source : subject.sources.front()).plan->name, kGroups);
}

std::string grouped_fault(const GateSubject& subject) {
  const LinearSource* source = groupable(subject);
  if (source == nullptr) return fmt::format("no projection's N is a multiple of {}", kGroups * kTileColumns);
  Backend& backend = subject.backend;
  const std::vector<Group> groups = load_groups(backend, *source);
  const std::int64_t k = source->plan->tensor.k;
  const std::int64_t n = source->plan->tensor.n / kGroups;
  for (const std::int64_t m : {1, 9}) {
    const Matrix<float> x = layout_input(m, kGroups * k);
    const Matrix<float> y = grouped_product(backend, groups, x);
    for (std::int64_t g = 0; g < kGroups; ++g) {
      const ServedWeight served(groups[static_cast<std::size_t>(g)].source);
      const ExactProduct exact = exact_product(served, columns(x, g * k, k), subject.team);
      const std::string fault = describe_fault(columns(y, g * n, n), exact, backend.activation_type() == DType::f16);
      if (!fault.empty()) return fmt::format("M = {}, group {} of {}: {}", m, g, kGroups, fault);
    }
  }
  return "";
}

std::string excluded_fault(const GateSubject& subject, const std::string& role) {
  const std::string reason = refusal_of(subject, role);
  if (reason.empty()) return "no contract excludes it by name";
  Backend& backend = subject.backend;
  PlannedProjection plan = *subject.sources.front().plan;
  plan.tensor.role = role;
  plan.route = Route::dense;
  plan.reason = reason;
  LinearSource source = subject.sources.front();
  source.plan = &plan;
  const std::unique_ptr<Linear> weight = backend.load_linear(source);
  const Matrix<float> x = layout_input(9, weight->k());
  const ExactProduct exact = exact_product(ServedWeight(source), x, subject.team);
  for (const std::int64_t m : {1, 9}) {
    const Matrix<float> y = product_by_steps(backend, *weight, x, m, backend.activation_type());
    const Measures measures = measure(y.view(), exact.values.view());
    if (measures.finite && measures.relative_l2 <= kSameWeightsL2) continue;
    return fmt::format("M = {}: planned dense, but its product is {:.3g} from that of the original weights", m,
                       measures.relative_l2);
  }
  return "";
}

std::string shared_workspace_fault(const GateSubject& subject) {
  Backend& backend = subject.backend;
  std::vector<std::unique_ptr<Linear>> weights;
  for (const LinearSource& source : subject.sources) weights.push_back(backend.load_linear(source));
  for (const std::int64_t m : {9, 17}) {
    const auto run = [&](std::size_t i) {
      return product_by_steps(backend, *weights[i], layout_input(m, weights[i]->k(), kLayoutSeed + i), m,
                              backend.activation_type());
    };
    std::vector<Matrix<float>> first;
    for (std::size_t i = 0; i < weights.size(); ++i) first.push_back(run(i));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Matrix<float> again = run(i);
      const auto before = std::as_const(first[i]).values();
      if (std::equal(before.begin(), before.end(), std::as_const(again).values().begin())) continue;
      return fmt::format("M = {}: {} gives other bits after the others used the workspace", m,
                         subject.sources[i].plan->name);
    }
  }
  return "";
}

std::string small_workspace_fault(const GateSubject& subject) {
  const std::unique_ptr<Backend> small = subject.with_workspace(kTinyWorkspace);
  check(small != nullptr, "a device with a small workspace");
  for (const LinearSource& source : subject.sources) {
    try {
      const std::unique_ptr<Linear> weight = small->load_linear(source);
      product_by_steps(*small, *weight, layout_input(9, weight->k()), 9, small->activation_type());
    } catch (const Error&) {
      continue;
    }
    return fmt::format("{}: a product of 9 rows was served with {} bytes of workspace", source.plan->name,
                       kTinyWorkspace);
  }
  return "";
}

}  // namespace qpn8
