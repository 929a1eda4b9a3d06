#include "evidence/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <variant>

#include "evidence/audit_product.hpp"
#include "evidence/audit_weight.hpp"
#include "evidence/fused_gate_up.hpp"

namespace qpn8 {
namespace {

template <class T>
MatrixView<const T> first_rows(const Matrix<T>& matrix, std::int64_t rows) {
  return matrix.view().row_range(0, rows);
}

Matrix<float> copy_rows(const Matrix<float>& matrix, std::int64_t rows) {
  Matrix<float> copy(rows, matrix.cols());
  std::copy_n(matrix.values().begin(), copy.values().size(), copy.values().begin());
  return copy;
}

bool has_fused_form(const PlannedProjection& projection) {
  return projection.route == Route::qpn8 && projection.tensor.role.ends_with("gate_up_proj");
}

/// Audits one projection: its weights in every form that is compared are on the device together, and gone with it.
class ProjectionAudit {
 public:
  ProjectionAudit(const LinearSource& source, Backend& backend, const AuditOptions& options, ThreadTeam& team,
                  AuditResult& result)
      : plan_(*source.plan),
        backend_(backend),
        options_(options),
        team_(team),
        result_(result),
        served_(backend.load_linear(source)),
        exact_(source),
        original_plan_(plan_) {
    original_plan_.route = Route::dense;
    LinearSource stored = source;
    stored.plan = &original_plan_;
    original_ = backend.load_linear(stored);
    fallback_ = load_fallback(exact_, source, backend);
  }

  /// Rows of input that the options ask for, a multiple of the largest step.
  std::int64_t wanted_rows() const {
    const std::int64_t step = *std::max_element(options_.rows.begin(), options_.rows.end());
    const std::int64_t rows = (options_.least_outputs + plan_.tensor.n - 1) / std::max<std::int64_t>(plan_.tensor.n, 1);
    return std::max<std::int64_t>(1, (rows + step - 1) / step) * step;
  }

  void run(ActivationPattern pattern, const Matrix<float>& x) {
    const ExactProduct exact = exact_product(exact_, x, team_);
    const DType activations = backend_.activation_type();
    const Matrix<float> original = dense_product(backend_, *original_, x, DType::f32);
    const Matrix<float> fallback = dense_product(backend_, *fallback_.weight, x, activations);
    for (const std::int64_t m : options_.rows) {
      const std::int64_t rows = x.rows() / m * m;
      if (rows == 0) {
        result_.notes.push_back(
            fmt::format("{}: {} rows were captured, too few for a step of {}", plan_.name, x.rows(), m));
        continue;
      }
      const Matrix<float> inputs = copy_rows(x, rows);
      const Matrix<float> y = product_by_steps(backend_, *served_, inputs, m, activations);
      add(pattern, m, AuditReference::fp64, measure(y.view(), first_rows(exact.values, rows)));
      add(pattern, m, AuditReference::original, measure(y.view(), first_rows(original, rows)));
      add(pattern, m, AuditReference::fallback, measure(y.view(), first_rows(fallback, rows)));
      if (has_fused_form(plan_)) run_fused(pattern, m, inputs, exact);
    }
  }

 private:
  AuditRow row(ActivationPattern pattern, std::int64_t m, AuditReference reference, const Measures& measures) const {
    return {.name = plan_.name,
            .role = plan_.tensor.role,
            .k = plan_.tensor.k,
            .n = plan_.tensor.n,
            .m = m,
            .pattern = pattern,
            .reference = reference,
            .route = plan_.route == Route::qpn8 ? "qpn8" : "dense",
            .measures = measures};
  }

  void add(ActivationPattern pattern, std::int64_t m, AuditReference reference, const Measures& measures) {
    result_.rows.push_back(row(pattern, m, reference, measures));
  }

  void run_fused(ActivationPattern pattern, std::int64_t m, const Matrix<float>& x, const ExactProduct& exact) {
    const Matrix<float> fused = fused_gate_up(product_by_steps(backend_, *served_, x, m, DType::f32), team_);
    const Matrix<float> unfused = unfused_gate_up(dense_product(backend_, *fallback_.weight, x, DType::f32), team_);
    const auto add_fused = [&](AuditReference reference, const Measures& measures) {
      AuditRow entry = row(pattern, m, reference, measures);
      entry.n = fused.cols();
      entry.route = "fused";
      result_.fused.push_back(std::move(entry));
    };
    const Matrix<double> truth = exact_gate_up(exact.values);
    add_fused(AuditReference::fp64, measure(fused.view(), first_rows(truth, fused.rows())));
    add_fused(AuditReference::fallback, measure(fused.view(), std::as_const(unfused).view()));
  }

  const PlannedProjection& plan_;
  Backend& backend_;
  const AuditOptions& options_;
  ThreadTeam& team_;
  AuditResult& result_;
  std::unique_ptr<Linear> served_;
  ServedWeight exact_;
  PlannedProjection original_plan_;
  std::unique_ptr<Linear> original_;
  Fallback fallback_;
};

void audit_unit(const AuditedModel& model, const AuditedUnit& unit, std::uint64_t seed, const AuditOptions& options,
                ThreadTeam& team, AuditResult& result) {
  const LinearSource source = model.source(unit);
  const PlannedProjection& projection = unit.planned;
  ProjectionAudit audit(source, *model.backend, options, team, result);
  const std::int64_t rows = audit.wanted_rows();
  for (const ActivationPattern pattern : kSyntheticPatterns) {
    audit.run(pattern, synthetic_activations(pattern, rows, projection.tensor.k, seed++));
  }
  const auto captured = model.captured.find(projection.name);
  if (captured == model.captured.end()) {
    result.notes.push_back(projection.name + ": the forward pass did not reach it, so nothing was captured");
    return;
  }
  audit.run(ActivationPattern::captured, copy_rows(captured->second, std::min(rows, captured->second.rows())));
}

/// What the contracts say to the fused form of each role that has one.
std::vector<FusedAdmission> ask_for_fused(const Plan& plan, std::span<const Contract> contracts) {
  std::vector<FusedAdmission> answers;
  std::set<std::string> asked;
  for (const PlannedProjection& projection : plan.projections()) {
    if (!has_fused_form(projection) || !asked.insert(projection.tensor.role).second) continue;
    TensorDesc fused = projection.tensor;
    fused.activation = FusedActivation::silu;
    const auto answer =
        admit(plan.hardware(), plan.topology(), fused, std::vector<Contract>(contracts.begin(), contracts.end()));
    if (const auto* admission = std::get_if<Admission>(&answer)) {
      answers.push_back({fused.role, true, "admitted by contract " + admission->contract});
    } else {
      answers.push_back({fused.role, false, std::get<Refusal>(answer).reason});
    }
  }
  return answers;
}

}  // namespace

std::string_view to_string(AuditReference reference) {
  constexpr std::array<std::string_view, 3> kNames = {"fp64", "original", "fallback"};
  return kNames.at(static_cast<std::size_t>(reference));
}

std::vector<const AuditRow*> AuditResult::broken() const {
  std::vector<const AuditRow*> broken;
  const auto check_row = [&](const AuditRow& row) {
    if (row.reference == AuditReference::fallback && !bounds.hold(row.measures)) broken.push_back(&row);
  };
  for (const AuditRow& row : rows) {
    if (row.route == "qpn8") check_row(row);
  }
  for (const AuditRow& row : fused) {
    const bool admitted = std::any_of(fused_admissions.begin(), fused_admissions.end(),
                                      [&](const auto& answer) { return answer.admitted && answer.role == row.role; });
    if (admitted) check_row(row);
  }
  return broken;
}

void audit_projections(const AuditedModel& model, std::span<const Contract> contracts, const AuditOptions& options,
                       ThreadTeam& team, AuditResult& result, const AuditProgress& progress) {
  result.plan = to_json(model.plan);
  result.fused_admissions = ask_for_fused(model.plan, contracts);
  const auto total = static_cast<std::int64_t>(model.units.size());
  std::int64_t done = 0;
  for (const AuditedUnit& unit : model.units) {
    // Far enough apart that no two projections share a pattern's seed.
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(done) * kSyntheticPatterns.size();
    audit_unit(model, unit, seed, options, team, result);
    ++done;
    if (progress) progress(done, total);
  }
}

}  // namespace qpn8
