#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "checkpoint/deepseek_v4_config.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// SwiGLU experts that a token's id or a learned score chooses, and one that every token goes through.
class ScoredMoeBlock {
 public:
  /// `layer` is its number.
  ScoredMoeBlock(const WeightLoader& loader, Backend& backend, std::size_t layer, const ModelConfig& config,
                 const DeepseekV4Config& details, std::int64_t max_rows);

  /// x and out [batch.rows, hidden_size]. out is this rank's share of a sum over ranks.
  void forward(const Tensor& x, const Batch& batch, const Tensor& out);

  std::int64_t bytes_per_token() const;
  std::int64_t bytes() const;
  std::int64_t products_per_token() const;

 private:
  void run_shared(const Tensor& x, const Tensor& out);
  std::int64_t shared_bytes() const { return shared_gate_up_->bytes() + shared_down_->bytes(); }

  Backend& backend_;
  std::int64_t experts_per_token_;
  ExpertScoring scoring_;
  std::unique_ptr<Linear> router_;
  ExpertWeights experts_;
  std::unique_ptr<Linear> shared_gate_up_;
  std::unique_ptr<Linear> shared_down_;
  OwnedTensor bias_;              // learned routing
  OwnedTensor experts_of_token_;  // routing by id, [vocabulary, experts a token]
  OwnedTensor logits_;
  OwnedTensor ids_;
  OwnedTensor route_weights_;
  OwnedTensor shared_projected_;
  OwnedTensor shared_gated_;
  OwnedTensor shared_out_;
};

}  // namespace qpn8
