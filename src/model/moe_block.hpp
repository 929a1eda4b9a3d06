#pragma once

#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "model/decoder.hpp"
#include "model/feed_forward.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// Softmax-routed SwiGLU experts.
class MoeBlock : public FeedForward {
 public:
  /// `prefix` ends in "mlp.".
  MoeBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix, const DecoderSpec::Moe& moe,
           std::int64_t max_rows);

  void forward(ResidualStream& stream, const RowNorm& norm) override;
  std::int64_t bytes_per_token() const override;
  std::int64_t bytes() const override;
  std::int64_t products_per_token() const override;

 private:
  Backend& backend_;
  DecoderSpec::Moe moe_;
  std::unique_ptr<Linear> router_;
  ExpertWeights experts_;
  OwnedTensor logits_;
  OwnedTensor ids_;
  OwnedTensor route_weights_;
};

}  // namespace qpn8
