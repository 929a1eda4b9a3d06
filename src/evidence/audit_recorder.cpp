#include "evidence/audit_recorder.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "evidence/audit_product.hpp"

namespace qpn8 {
namespace {

// What a backend shares is an LM head tied to the embedding, and nothing else.
constexpr const char* kSharedName = "lm_head";

/// The rows of x that a step routes to an expert.
Matrix<float> routed_rows(const Matrix<float>& x, const std::vector<std::int32_t>& ids, std::int64_t per_row,
                          std::int32_t expert) {
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0; t < x.rows(); ++t) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(t * per_row);
    if (std::find(begin, begin + static_cast<std::ptrdiff_t>(per_row), expert) != begin + per_row) rows.push_back(t);
  }
  Matrix<float> routed(static_cast<std::int64_t>(rows.size()), x.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<const float> row = x.view().row(rows[i]);
    std::copy(row.begin(), row.end(), routed.view().row(static_cast<std::int64_t>(i)).begin());
  }
  return routed;
}

}  // namespace

std::unique_ptr<Linear> ActivationRecorder::load_linear(const LinearSource& source) {
  std::unique_ptr<Linear> loaded = inner().load_linear(source);
  if (recording_) names_[loaded.get()] = source.plan->name;
  return loaded;
}

std::unique_ptr<Linear> ActivationRecorder::share_linear(const Tensor& weight) {
  std::unique_ptr<Linear> shared = inner().share_linear(weight);
  if (recording_) names_[shared.get()] = kSharedName;
  return shared;
}

void ActivationRecorder::linear(const Linear& weight, const Tensor& x, const Tensor& y) {
  if (recording_ && x.rows > 0) record(weight, read_floats(inner(), x));
  inner().linear(weight, x, y);
}

void ActivationRecorder::experts(const ExpertWeights& weights, const Tensor& x, const Tensor& ids,
                                 const Tensor& route_weights, const Tensor& out) {
  if (recording_) {
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(ids.rows * ids.cols));
    inner().read(ids, std::as_writable_bytes(std::span(chosen)));
    const Matrix<float> inputs = read_floats(inner(), x);
    for (std::size_t expert = 0; expert < weights.gate_up.size(); ++expert) {
      record_expert(*weights.gate_up[expert], *weights.down[expert], weights.limit,
                    routed_rows(inputs, chosen, ids.cols, static_cast<std::int32_t>(expert)));
    }
  }
  inner().experts(weights, x, ids, route_weights, out);
}

void ActivationRecorder::run_step(const Batch& batch, int variant, const std::function<void()>& step) {
  if (recording_) return step();
  inner().run_step(batch, variant, step);
}

/// What an expert's second projection is fed stays inside experts(), so it is computed again by its parts.
void ActivationRecorder::record_expert(const Linear& gate_up, const Linear& down, float limit, const Matrix<float>& x) {
  if (x.rows() == 0) return;
  record(gate_up, x);
  const OwnedTensor input = inner().allocate(inner().activation_type(), x.rows(), x.cols());
  const OwnedTensor projected = inner().allocate(inner().activation_type(), x.rows(), gate_up.n());
  const OwnedTensor gated = inner().allocate(inner().activation_type(), x.rows(), down.k());
  write_floats(inner(), input.tensor, x.view());
  inner().linear(gate_up, input.tensor, projected.tensor);
  inner().swiglu(projected.tensor, limit, gated.tensor);
  record(down, read_floats(inner(), gated.tensor));
}

void ActivationRecorder::record(const Linear& weight, const Matrix<float>& x) {
  Rows& rows = recorded_[names_.at(&weight)];
  rows.cols = x.cols();
  const auto limit = static_cast<std::size_t>(max_rows_ * x.cols());
  const std::size_t count = std::min(x.values().size(), limit - std::min(limit, rows.values.size()));
  rows.values.insert(rows.values.end(), x.values().begin(), x.values().begin() + static_cast<std::ptrdiff_t>(count));
}

RecordedInputs ActivationRecorder::stop() {
  recording_ = false;
  names_.clear();
  RecordedInputs inputs;
  for (const auto& [name, rows] : std::exchange(recorded_, {})) {
    Matrix<float> matrix(static_cast<std::int64_t>(rows.values.size()) / rows.cols, rows.cols);
    std::copy(rows.values.begin(), rows.values.end(), matrix.values().begin());
    inputs.emplace(name, std::move(matrix));
  }
  return inputs;
}

}  // namespace qpn8
