#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "checkpoint/hybrid_config.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// SwiGLU of one width.
class GatedMlp {
 public:
  /// `prefix` ends in '.'.
  GatedMlp(const WeightLoader& loader, Backend& backend, const std::string& prefix, std::int64_t max_rows);

  /// x and out [rows, hidden_size].
  void forward(const Tensor& x, const Tensor& out);

  std::int64_t bytes() const { return gate_up_->bytes() + down_->bytes(); }
  std::int64_t products_per_token() const { return products(*gate_up_) + products(*down_); }

 private:
  Backend& backend_;
  std::unique_ptr<Linear> gate_up_;
  std::unique_ptr<Linear> down_;
  OwnedTensor projected_;
  OwnedTensor gated_;
};

/// What a hybrid decoder's layer does behind its attention: one MLP, or softmax-routed experts and one that every token
/// goes through, by a gate of its own.
class HybridFeedForward {
 public:
  /// `prefix` ends in "mlp.".
  HybridFeedForward(const WeightLoader& loader, Backend& backend, const std::string& prefix,
                    const HybridConfig& details, bool experts, std::int64_t hidden_size, std::int64_t max_rows);

  void forward(const Tensor& x, const Tensor& out);

  std::int64_t bytes_per_token() const;
  std::int64_t bytes() const;
  std::int64_t products_per_token() const;

 private:
  Backend& backend_;
  std::int64_t experts_per_token_;
  bool normalise_;
  std::unique_ptr<GatedMlp> mlp_;   // of every token
  std::unique_ptr<Linear> router_;  // null without experts, as what follows
  std::unique_ptr<Linear> shared_gate_;
  ExpertWeights experts_;
  OwnedTensor logits_;
  OwnedTensor ids_;
  OwnedTensor route_weights_;
  OwnedTensor gate_;
  OwnedTensor shared_;
};

}  // namespace qpn8
