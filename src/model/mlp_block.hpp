#pragma once

#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "model/feed_forward.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// SwiGLU: down(silu(gate(x)) * up(x)), gate and up in one projection.
class MlpBlock : public FeedForward {
 public:
  /// `prefix` ends in "mlp.".
  MlpBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix, std::int64_t max_rows)
      : backend_(backend),
        gate_up_(loader.gated_linear(prefix + "gate_up_proj")),
        down_(loader.linear(prefix + "down_proj")),
        projected_(backend.allocate(backend.activation_type(), max_rows, gate_up_->n())),
        gated_(backend.allocate(backend.activation_type(), max_rows, gate_up_->n() / 2)) {}

  void forward(ResidualStream& stream, const RowNorm& norm) override {
    const std::int64_t rows = stream.hidden.rows;
    const Tensor gated = gated_.tensor.row_range(0, rows);
    backend_.linear_gated(stream, norm, *gate_up_, projected_.tensor.row_range(0, rows), gated);
    backend_.linear_added(*down_, gated, stream);
  }

  std::int64_t bytes_per_token() const override { return bytes(); }
  std::int64_t bytes() const override { return gate_up_->bytes() + down_->bytes(); }
  std::int64_t products_per_token() const override { return products(*gate_up_) + products(*down_); }

 private:
  Backend& backend_;
  std::unique_ptr<Linear> gate_up_;
  std::unique_ptr<Linear> down_;
  OwnedTensor projected_;
  OwnedTensor gated_;
};

}  // namespace qpn8
