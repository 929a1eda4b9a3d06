#include <algorithm>

#include "model/latent_attention_block.hpp"

namespace qpn8 {

Compressor::Compressor(const WeightLoader& loader, Backend& backend, const std::string& prefix,
                       const std::string& planned, const DeepseekV4Config::Layer& kind, std::int64_t width, float eps,
                       std::int64_t max_rows)
    : backend_(backend), kind_(kind), width_(width), eps_(eps), projection_(loader.linear(planned)) {
  gate_bias_ = loader.floats(prefix + "ape", kind.ratio, projection_->n() / 2);
  norm_ = loader.row(prefix + "norm.weight", width);
  projected_ = backend.allocate(DType::f32, max_rows, projection_->n());
}

EntryCache Compressor::make_cache(int slots, std::int64_t capacity, DType dtype) const {
  EntryCache cache;
  cache.pending_per_slot = (kind_.attention == CompressedAttention::sparse ? 2 : 1) * kind_.ratio;
  cache.entries_per_slot = std::max<std::int64_t>(1, capacity / kind_.ratio);
  cache.pending = backend_.allocate(DType::f32, slots * cache.pending_per_slot, projection_->n());
  cache.entries = backend_.allocate(dtype, slots * cache.entries_per_slot, width_);
  return cache;
}

void Compressor::forward(const Tensor& x, const Tensor& frequencies, const Batch& batch, const EntryCache& cache) {
  const Tensor projected = projected_.tensor.row_range(0, x.rows);
  backend_.linear(*projection_, x, projected);
  backend_.pool_rows({.x = projected,
                      .ratio = kind_.ratio,
                      .overlaps = kind_.attention == CompressedAttention::sparse,
                      .eps = eps_,
                      .gate_bias = gate_bias_.tensor,
                      .norm = norm_.tensor,
                      .frequencies = frequencies,
                      .pending = cache.pending_rows(),
                      .entries = cache.entry_rows()},
                     batch);
}

}  // namespace qpn8
