#include "model/scored_moe_block.hpp"

#include <fmt/format.h>

namespace qpn8 {

ScoredMoeBlock::ScoredMoeBlock(const WeightLoader& loader, Backend& backend, std::size_t layer,
                               const ModelConfig& config, const DeepseekV4Config& details, std::int64_t max_rows)
    : backend_(backend),
      experts_per_token_(details.experts_per_token),
      router_(loader.linear(fmt::format("model.layers.{}.ffn.gate", layer))),
      shared_gate_up_(loader.linear(fmt::format("model.layers.{}.ffn.shared_experts.gate_up_proj", layer))),
      shared_down_(loader.linear(fmt::format("model.layers.{}.ffn.shared_experts.down_proj", layer))),
      logits_(backend.allocate(DType::f32, max_rows, details.experts)),
      ids_(backend.allocate(DType::i32, max_rows, details.experts_per_token)),
      route_weights_(backend.allocate(DType::f32, max_rows, details.experts_per_token)),
      shared_projected_(backend.allocate(backend.activation_type(), max_rows, shared_gate_up_->n())),
      shared_gated_(backend.allocate(backend.activation_type(), max_rows, shared_down_->k())),
      shared_out_(backend.allocate(backend.activation_type(), max_rows, config.hidden_size)) {
  const std::string gate = fmt::format("layers.{}.ffn.gate.", layer);
  scoring_.scale = static_cast<float>(details.routed_scale);
  scoring_.ids_given = details.layers[layer].hash_routing;
  if (scoring_.ids_given) {
    experts_of_token_ = loader.choices(gate + "tid2eid", config.vocab_size, details.experts_per_token, details.experts);
  } else {
    bias_ = loader.row(gate + "bias", details.experts);
    scoring_.bias = &bias_.tensor;
  }
  experts_.limit = static_cast<float>(details.swiglu_limit);
  for (std::int64_t expert = 0; expert < details.experts; ++expert) {
    const std::string one = fmt::format("model.layers.{}.ffn.experts.{}.", layer, expert);
    experts_.gate_up.push_back(loader.linear(one + "gate_up_proj"));
    experts_.down.push_back(loader.linear(one + "down_proj"));
  }
}

void ScoredMoeBlock::forward(const Tensor& x, const Batch& batch, const Tensor& out) {
  const Tensor logits = logits_.tensor.row_range(0, x.rows);
  const Tensor ids = ids_.tensor.row_range(0, x.rows);
  const Tensor route_weights = route_weights_.tensor.row_range(0, x.rows);
  const Tensor shared_out = shared_out_.tensor.row_range(0, x.rows);
  backend_.linear(*router_, x, logits);
  if (scoring_.ids_given) backend_.gather_rows(experts_of_token_.tensor, batch.ids, ids);
  backend_.score_experts(logits, scoring_, ids, route_weights);
  backend_.experts(experts_, x, ids, route_weights, out);
  run_shared(x, shared_out);
  backend_.add(out, shared_out);
}

void ScoredMoeBlock::run_shared(const Tensor& x, const Tensor& out) {
  const Tensor projected = shared_projected_.tensor.row_range(0, x.rows);
  const Tensor gated = shared_gated_.tensor.row_range(0, x.rows);
  backend_.linear(*shared_gate_up_, x, projected);
  backend_.swiglu(projected, experts_.limit, gated);
  backend_.linear(*shared_down_, gated, out);
}

std::int64_t ScoredMoeBlock::bytes_per_token() const {
  const std::int64_t one = experts_.gate_up.front()->bytes() + experts_.down.front()->bytes();
  return router_->bytes() + experts_per_token_ * one + shared_bytes();
}

std::int64_t ScoredMoeBlock::bytes() const {
  std::int64_t bytes = router_->bytes() + shared_bytes();
  for (const auto& expert : experts_.gate_up) bytes += expert->bytes();
  for (const auto& expert : experts_.down) bytes += expert->bytes();
  return bytes;
}

std::int64_t ScoredMoeBlock::products_per_token() const {
  const std::int64_t one = products(*experts_.gate_up.front()) + products(*experts_.down.front());
  return products(*router_) + experts_per_token_ * one + products(*shared_gate_up_) + products(*shared_down_);
}

}  // namespace qpn8
