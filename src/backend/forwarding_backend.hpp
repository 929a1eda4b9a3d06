#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "backend/backend.hpp"

namespace qpn8 {

/// A backend that hands every call on: the base of those that watch or disturb some of them.
class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  const Hardware& hardware() const override { return inner_->hardware(); }
  DType activation_type() const override { return inner_->activation_type(); }
  bool has(Operator op) const override { return inner_->has(op); }

  OwnedTensor allocate(DType dtype, std::int64_t rows, std::int64_t cols) override {
    return inner_->allocate(dtype, rows, cols);
  }
  void write(const Tensor& target, std::span<const std::byte> source) override { inner_->write(target, source); }
  void read(const Tensor& source, std::span<std::byte> target) override { inner_->read(source, target); }
  std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape) override { return inner_->make_kv_cache(shape); }

  void require_room(const Plan& plan) override { inner_->require_room(plan); }
  std::unique_ptr<Linear> load_linear(const LinearSource& source) override { return inner_->load_linear(source); }
  std::unique_ptr<Linear> share_linear(const Tensor& weight) override { return inner_->share_linear(weight); }
  OwnedTensor load_table(const Checkpoint& checkpoint, const CheckpointTensor& tensor) override {
    return inner_->load_table(checkpoint, tensor);
  }

  void embed(const Tensor& table, const Tensor& ids, const Tensor& out) override { inner_->embed(table, ids, out); }
  void gather_rows(const Tensor& in, const Tensor& rows, const Tensor& out) override {
    inner_->gather_rows(in, rows, out);
  }
  void linear(const Linear& weight, const Tensor& x, const Tensor& y) override { inner_->linear(weight, x, y); }
  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    inner_->rms_norm(x, weight, eps, out);
  }
  void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& weight, float eps,
                    const Tensor& out) override {
    inner_->add_rms_norm(residual, delta, weight, eps, out);
  }
  void head_rms_norm(const Tensor& x, const Tensor& weight, float eps) override {
    inner_->head_rms_norm(x, weight, eps);
  }
  void rope_angles(const Tensor& positions, const Tensor& frequencies, float scale, const Tensor& angles) override {
    inner_->rope_angles(positions, frequencies, scale, angles);
  }
  void rope(const Tensor& x, std::int64_t head_dim, const Tensor& angles, RopePairing pairing) override {
    inner_->rope(x, head_dim, angles, pairing);
  }
  void append_kv(KvCache& cache, std::int64_t layer, const Tensor& k, const Tensor& v, const Batch& batch) override {
    inner_->append_kv(cache, layer, k, v, batch);
  }
  void attention(const KvCache& cache, std::int64_t layer, const Tensor& q, const Batch& batch,
                 const AttentionShape& shape, const Tensor& out) override {
    inner_->attention(cache, layer, q, batch, shape, out);
  }
  void swiglu(const Tensor& gate_up, float limit, const Tensor& out) override { inner_->swiglu(gate_up, limit, out); }
  void route_experts(const Tensor& logits, bool normalise, const Tensor& ids, const Tensor& weights) override {
    inner_->route_experts(logits, normalise, ids, weights);
  }
  void experts(const ExpertWeights& weights, const Tensor& x, const Tensor& ids, const Tensor& route_weights,
               const Tensor& out) override {
    inner_->experts(weights, x, ids, route_weights, out);
  }
  void find_non_finite(const Tensor& x, const Tensor& out) override { inner_->find_non_finite(x, out); }
  void argmax(const Tensor& x, const Tensor& out) override { inner_->argmax(x, out); }
  void rope_tails(const Tensor& x, std::int64_t head_dim, const Tensor& angles) override {
    inner_->rope_tails(x, head_dim, angles);
  }
  void store_rows(const Tensor& x, const Batch& batch, const SequenceRows& store) override {
    inner_->store_rows(x, batch, store);
  }
  void pool_rows(const PoolInputs& inputs, const Batch& batch) override { inner_->pool_rows(inputs, batch); }
  void select_entries(const SelectInputs& inputs, const Batch& batch, const Tensor& chosen) override {
    inner_->select_entries(inputs, batch, chosen);
  }
  void latent_attention(const LatentInputs& inputs, const Batch& batch, const Tensor& out) override {
    inner_->latent_attention(inputs, batch, out);
  }
  void score_experts(const Tensor& logits, const ExpertScoring& scoring, const Tensor& ids,
                     const Tensor& weights) override {
    inner_->score_experts(logits, scoring, ids, weights);
  }
  void add(const Tensor& x, const Tensor& delta) override { inner_->add(x, delta); }
  void stream_weights(const Tensor& h, const StreamMaps& maps, const Tensor& weights) override {
    inner_->stream_weights(h, maps, weights);
  }
  void collapse_streams(const Tensor& h, const Tensor& weights, const Tensor& x) override {
    inner_->collapse_streams(h, weights, x);
  }
  void expand_streams(const Tensor& h, const Tensor& weights, const Tensor& y) override {
    inner_->expand_streams(h, weights, y);
  }
  void causal_conv(const ConvInputs& inputs, const Batch& batch, const Tensor& out) override {
    inner_->causal_conv(inputs, batch, out);
  }
  void delta_rule(const DeltaInputs& inputs, const Batch& batch, const Tensor& out) override {
    inner_->delta_rule(inputs, batch, out);
  }
  void gated_rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& gate, GateKind kind) override {
    inner_->gated_rms_norm(x, weight, eps, gate, kind);
  }
  void multiply_by_gate(const Tensor& x, const Tensor& gate) override { inner_->multiply_by_gate(x, gate); }
  void add_gated(const Tensor& x, const Tensor& delta, const Tensor& gate) override {
    inner_->add_gated(x, delta, gate);
  }
  void normalise_streams(const Tensor& h, const Tensor& weight, std::int64_t streams, float eps,
                         const Tensor& out) override {
    inner_->normalise_streams(h, weight, streams, eps, out);
  }
  void scaled_silu(const Tensor& x, float factor) override { inner_->scaled_silu(x, factor); }
  void mix_streams(const Tensor& normed, const Tensor& gates, const Tensor& x) override {
    inner_->mix_streams(normed, gates, x);
  }
  void inject_streams(const Tensor& h, const Tensor& gates, const Tensor& y) override {
    inner_->inject_streams(h, gates, y);
  }
  void gate_values(const Tensor& keys, const Tensor& queries, const Tensor& value, const Tensor& out) override {
    inner_->gate_values(keys, queries, value, out);
  }
  void mean_pool(const MeanPoolInputs& inputs, const Batch& batch) override { inner_->mean_pool(inputs, batch); }
  void block_attention(const KvCache& cache, std::int64_t layer, const Tensor& q, const Batch& batch,
                       const Tensor& chosen, const BlockAttentionShape& shape, const Tensor& out) override {
    inner_->block_attention(cache, layer, q, batch, chosen, shape, out);
  }
  std::unique_ptr<NgramEmbedding> load_ngrams(const NgramSource& source) override {
    return inner_->load_ngrams(source);
  }
  void embed_ngrams(const NgramEmbedding& table, const Tensor& history, const Batch& batch,
                    const Tensor& out) override {
    inner_->embed_ngrams(table, history, batch, out);
  }
  void prepare_heads(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch) override {
    inner_->prepare_heads(cache, layer, heads, batch);
  }
  // Sequences with products are not handed on, so that their products come by linear(); nor is run_step(): a device
  // that repeats recorded calls would pass this backend by.

 protected:
  Backend& inner() { return *inner_; }

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace qpn8
