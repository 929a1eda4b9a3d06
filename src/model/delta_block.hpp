#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "checkpoint/hybrid_config.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// What a linear attention layer remembers of the sequences: the convolution's last inputs, and a matrix a head.
struct DeltaCache {
  OwnedTensor history;
  OwnedTensor states;
};

/// Linear attention by the gated delta rule: a short convolution over time, the rule, a gated norm.
class DeltaBlock {
 public:
  /// `prefix` ends in "linear_attn.".
  DeltaBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix, const HybridConfig& details,
             float eps, std::int64_t max_rows);

  DeltaCache make_cache(int slots) const;

  /// x and out [batch.rows, hidden_size].
  void forward(const Tensor& x, const Batch& batch, const DeltaCache& cache, const Tensor& out);

  std::int64_t bytes() const { return in_->bytes() + gates_->bytes() + out_->bytes(); }
  std::int64_t products_per_token() const { return products(*in_) + products(*gates_) + products(*out_); }

 private:
  Backend& backend_;
  HybridConfig details_;
  float eps_;
  std::unique_ptr<Linear> in_;     // q | k | v | z
  std::unique_ptr<Linear> gates_;  // b | a
  std::unique_ptr<Linear> out_;
  OwnedTensor taps_;
  OwnedTensor decay_log_;
  OwnedTensor decay_bias_;
  OwnedTensor norm_;
  OwnedTensor projected_;  // q | k | v | z | b | a
  OwnedTensor convolved_;
  OwnedTensor recalled_;
};

}  // namespace qpn8
