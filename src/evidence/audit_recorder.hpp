#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/forwarding_backend.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8 {

/// Inputs of projections, by the plan's names.
using RecordedInputs = std::map<std::string, Matrix<float>>;

/// A backend that keeps what its projections are multiplied by. It sits between a model and its device, so that the
/// model is the one that runs in earnest and has no branch for it.
class ActivationRecorder : public ForwardingBackend {
 public:
  /// Keeps the first `max_rows` rows of each projection.
  ActivationRecorder(std::unique_ptr<Backend> inner, std::int64_t max_rows)
      : ForwardingBackend(std::move(inner)), max_rows_(max_rows) {}

  std::unique_ptr<Linear> load_linear(const LinearSource& source) override;
  std::unique_ptr<Linear> share_linear(const Tensor& weight) override;
  void linear(const Linear& weight, const Tensor& x, const Tensor& y) override;
  void experts(const ExpertWeights& weights, const Tensor& x, const Tensor& ids, const Tensor& route_weights,
               const Tensor& out) override;

  /// Handed on once nothing is recorded any more: a device that repeats a step's calls passes this backend by.
  void run_step(const Batch& batch, int variant, const std::function<void()>& step) override;
  void forget_steps() override { inner().forget_steps(); }

  /// What was recorded; from now on nothing is, and calls are handed on as they are.
  RecordedInputs stop();

 private:
  struct Rows {
    std::vector<float> values;
    std::int64_t cols = 0;
  };

  void record(const Linear& weight, const Matrix<float>& x);
  void record_expert(const Linear& gate_up, const Linear& down, float limit, const Matrix<float>& x);

  std::int64_t max_rows_;
  bool recording_ = true;
  std::map<const Linear*, std::string> names_;
  std::map<std::string, Rows> recorded_;
};

}  // namespace qpn8
