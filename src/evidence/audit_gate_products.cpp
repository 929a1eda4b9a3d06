// Checks of single products: against references, and run again.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "evidence/audit_diagnosis.hpp"
#include "evidence/audit_gate_checks.hpp"
#include "evidence/audit_measures.hpp"
#include "evidence/audit_patterns.hpp"
#include "evidence/audit_product.hpp"
#include "evidence/audit_weight.hpp"

namespace qpn8 {
namespace {

constexpr std::array<std::int64_t, 2> kSteps = {1, 9};
constexpr std::uint64_t kProductSeed = 0x9a7e;
// Far from the variants that engines give their passes.
constexpr int kFirstVariant = 1000;
// E4M3 rounds a weight by 2.6 % on average and by 6.25 % at most; a checkpoint's own codes are not rounded again.
constexpr double kQuantisedL2 = 0.05;
constexpr double kStoredL2 = 1e-3;

Matrix<float> product_input(std::int64_t rows, std::int64_t k, std::uint64_t seed = kProductSeed) {
  return synthetic_activations(ActivationPattern::gaussian, rows, k, seed);
}

/// Inputs of a check by shares; a multiple of both steps.
Matrix<float> many_inputs(const Linear& weight, std::int64_t least_outputs) {
  const std::int64_t rows = (least_outputs + weight.n() - 1) / std::max<std::int64_t>(weight.n(), 1);
  return product_input((rows + 8) / 9 * 9, weight.k());
}

bool rounds_to_fp16(Backend& backend) { return backend.activation_type() == DType::f16; }

bool same_bits(const Matrix<float>& a, const Matrix<float>& b) {
  return std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end());
}

}  // namespace

std::string fp64_fault(const GateSubject& subject, const LinearSource& source) {
  Backend& backend = subject.backend;
  const std::unique_ptr<Linear> weight = backend.load_linear(source);
  const Matrix<float> x = product_input(9, weight->k());
  const ExactProduct exact = exact_product(ServedWeight(source), x, subject.team);
  for (const std::int64_t m : kSteps) {
    const Matrix<float> y = product_by_steps(backend, *weight, x, m, backend.activation_type());
    const std::string fault = describe_fault(y, exact, rounds_to_fp16(backend));
    if (!fault.empty()) return fmt::format("M = {}: {}", m, fault);
  }
  return "";
}

std::string fp32_fault(const GateSubject& subject, const LinearSource& source) {
  Backend& backend = subject.backend;
  PlannedProjection dense = *source.plan;
  dense.route = Route::dense;
  LinearSource stored = source;
  stored.plan = &dense;
  const std::unique_ptr<Linear> weight = backend.load_linear(source);
  const std::unique_ptr<Linear> original = backend.load_linear(stored);
  const bool quantised = source.plan->tensor.type != WeightType::f8_e4m3;
  const double bound = quantised ? kQuantisedL2 : kStoredL2;
  const Matrix<float> x = many_inputs(*weight, subject.least_outputs);
  const Matrix<float> expected = dense_product(backend, *original, x, DType::f32);
  for (const std::int64_t m : kSteps) {
    const Matrix<float> y = product_by_steps(backend, *weight, x, m, backend.activation_type());
    const Measures measures = measure(y.view(), expected.view());
    if (measures.finite && measures.relative_l2 <= bound) continue;
    return fmt::format("M = {}: relative L2 to the original weights' product is {:.3g}, at most {:.3g} is right", m,
                       measures.relative_l2, bound);
  }
  return "";
}

std::string fallback_fault(const GateSubject& subject, const LinearSource& source) {
  Backend& backend = subject.backend;
  const std::unique_ptr<Linear> weight = backend.load_linear(source);
  const Fallback fallback = load_fallback(ServedWeight(source), source, backend);
  const Matrix<float> x = many_inputs(*weight, subject.least_outputs);
  const Matrix<float> expected = dense_product(backend, *fallback.weight, x, backend.activation_type());
  const AuditBounds bounds;
  for (const std::int64_t m : kSteps) {
    const Matrix<float> y = product_by_steps(backend, *weight, x, m, backend.activation_type());
    const Measures measures = measure(y.view(), expected.view());
    if (bounds.hold(measures)) continue;
    return fmt::format(
        "M = {}: {:.3f} % of outputs are the fallback's FP16 numbers and relative L2 is {:.3g}; at least {:.3f} % and "
        "at most {:.4g} are right",
        m, measures.exact_fp16_fraction * 100, measures.relative_l2, bounds.exact_fp16_fraction * 100,
        bounds.relative_l2);
  }
  return "";
}

std::string replay_fault(const GateSubject& subject, std::size_t index) {
  Backend& backend = subject.backend;
  const LinearSource& source = subject.sources[index];
  const std::unique_ptr<Linear> weight = backend.load_linear(source);
  const ServedWeight served(source);
  for (const std::int64_t m : kSteps) {
    PreparedProduct step(backend, *weight, m, backend.activation_type());
    const auto run = [&](const Matrix<float>& x) {
      Matrix<float> y(m, weight->n());
      step.replay(kFirstVariant + static_cast<int>(index), x.view(), y.view());
      return y;
    };
    const Matrix<float> first_x = product_input(m, weight->k(), kProductSeed + 1);
    const Matrix<float> other_x = product_input(m, weight->k(), kProductSeed + 2);
    const Matrix<float> first = run(first_x);
    const Matrix<float> other = run(other_x);
    const std::string fault =
        describe_fault(other, exact_product(served, other_x, subject.team), rounds_to_fp16(backend));
    if (!fault.empty()) return fmt::format("M = {}: after the inputs changed {}", m, fault);
    // Twice each, since a device may record only a step that comes again.
    if (!same_bits(first, run(first_x)) || !same_bits(other, run(other_x))) {
      return fmt::format("M = {}: the same inputs again give other bits", m);
    }
  }
  return "";
}

}  // namespace qpn8
