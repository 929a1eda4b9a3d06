#include "model/hybrid_feed_forward.hpp"

#include <fmt/format.h>

namespace qpn8 {

GatedMlp::GatedMlp(const WeightLoader& loader, Backend& backend, const std::string& prefix, std::int64_t max_rows)
    : backend_(backend),
      gate_up_(loader.linear(prefix + "gate_up_proj")),
      down_(loader.linear(prefix + "down_proj")),
      projected_(backend.allocate(backend.activation_type(), max_rows, gate_up_->n())),
      gated_(backend.allocate(backend.activation_type(), max_rows, down_->k())) {}

void GatedMlp::forward(const Tensor& x, const Tensor& out) {
  const Tensor projected = projected_.tensor.row_range(0, x.rows);
  const Tensor gated = gated_.tensor.row_range(0, x.rows);
  backend_.linear(*gate_up_, x, projected);
  backend_.swiglu(projected, 0.0F, gated);
  backend_.linear(*down_, gated, out);
}

HybridFeedForward::HybridFeedForward(const WeightLoader& loader, Backend& backend, const std::string& prefix,
                                     const HybridConfig& details, bool experts, std::int64_t hidden_size,
                                     std::int64_t max_rows)
    : backend_(backend), experts_per_token_(details.experts_per_token), normalise_(details.normalise_experts) {
  mlp_ = std::make_unique<GatedMlp>(loader, backend, experts ? prefix + "shared_expert." : prefix, max_rows);
  if (!experts) return;
  router_ = loader.linear(prefix + "gate");
  shared_gate_ = loader.linear(prefix + "shared_expert_gate");
  for (std::int64_t expert = 0; expert < details.experts; ++expert) {
    const std::string one = fmt::format("{}experts.{}.", prefix, expert);
    experts_.gate_up.push_back(loader.linear(one + "gate_up_proj"));
    experts_.down.push_back(loader.linear(one + "down_proj"));
  }
  logits_ = backend.allocate(DType::f32, max_rows, details.experts);
  ids_ = backend.allocate(DType::i32, max_rows, experts_per_token_);
  route_weights_ = backend.allocate(DType::f32, max_rows, experts_per_token_);
  gate_ = backend.allocate(backend.activation_type(), max_rows, 1);
  shared_ = backend.allocate(backend.activation_type(), max_rows, hidden_size);
}

void HybridFeedForward::forward(const Tensor& x, const Tensor& out) {
  if (!router_) return mlp_->forward(x, out);
  const Tensor logits = logits_.tensor.row_range(0, x.rows);
  const Tensor ids = ids_.tensor.row_range(0, x.rows);
  const Tensor route_weights = route_weights_.tensor.row_range(0, x.rows);
  const Tensor gate = gate_.tensor.row_range(0, x.rows);
  const Tensor shared = shared_.tensor.row_range(0, x.rows);
  backend_.linear(*router_, x, logits);
  backend_.route_experts(logits, normalise_, ids, route_weights);
  backend_.experts(experts_, x, ids, route_weights, out);
  mlp_->forward(x, shared);
  backend_.linear(*shared_gate_, x, gate);
  backend_.add_gated(out, shared, gate);
}

std::int64_t HybridFeedForward::bytes_per_token() const {
  if (!router_) return mlp_->bytes();
  const std::int64_t one = experts_.gate_up.front()->bytes() + experts_.down.front()->bytes();
  return router_->bytes() + shared_gate_->bytes() + mlp_->bytes() + experts_per_token_ * one;
}

std::int64_t HybridFeedForward::bytes() const {
  std::int64_t bytes = mlp_->bytes();
  if (router_) bytes += router_->bytes() + shared_gate_->bytes();
  for (const auto& expert : experts_.gate_up) bytes += expert->bytes();
  for (const auto& expert : experts_.down) bytes += expert->bytes();
  return bytes;
}

std::int64_t HybridFeedForward::products_per_token() const {
  if (!router_) return mlp_->products_per_token();
  const std::int64_t one = products(*experts_.gate_up.front()) + products(*experts_.down.front());
  return products(*router_) + products(*shared_gate_) + mlp_->products_per_token() + experts_per_token_ * one;
}

}  // namespace qpn8
