#include "backend/backend.hpp"

#include "base/check.hpp"

namespace qpn8 {

void Backend::prepare_heads(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch) {
  if (heads.q_norm != nullptr) head_rms_norm(heads.q, *heads.q_norm, heads.eps);
  if (heads.k_norm != nullptr) head_rms_norm(heads.k, *heads.k_norm, heads.eps);
  rope(heads.q, heads.head_dim, heads.angles, heads.pairing);
  rope(heads.k, heads.head_dim, heads.angles, heads.pairing);
  append_kv(cache, layer, heads.k, heads.v, batch);
}

void Backend::attend(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch,
                     const AttentionShape& shape, const Tensor& out) {
  prepare_heads(cache, layer, heads, batch);
  attention(cache, layer, heads.q, batch, shape, out);
}

void Backend::normalise(ResidualStream& stream, const RowNorm& norm) {
  if (stream.pending) {
    add_rms_norm(stream.hidden, stream.delta, norm.weight, norm.eps, stream.normed);
  } else {
    rms_norm(stream.hidden, norm.weight, norm.eps, stream.normed);
  }
  stream.pending = false;
}

void Backend::linear_normalised(ResidualStream& stream, const RowNorm& norm, const Linear& weight, const Tensor& y) {
  normalise(stream, norm);
  linear(weight, stream.normed, y);
}

void Backend::linear_gated(ResidualStream& stream, const RowNorm& norm, const Linear& weight, const Tensor& gate_up,
                           const Tensor& out) {
  linear_normalised(stream, norm, weight, gate_up);
  swiglu(gate_up, out);
}

void Backend::linear_added(const Linear& weight, const Tensor& x, ResidualStream& stream) {
  check(!stream.pending, "the last block's sum has been added");
  linear(weight, x, stream.delta);
  stream.pending = true;
}

void Backend::require_room(const Plan& /*plan*/) {}

void Backend::forget_steps() {}

void Backend::run_step(const Batch& /*batch*/, int /*variant*/, const std::function<void()>& step) { step(); }

}  // namespace qpn8
