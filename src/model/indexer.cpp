#include "model/latent_attention_block.hpp"

namespace qpn8 {

Indexer::Indexer(const WeightLoader& loader, Backend& backend, const std::string& prefix, const std::string& planned,
                 const DeepseekV4Config& details, const DeepseekV4Config::Layer& kind, float eps, std::int64_t max_rows)
    : backend_(backend),
      heads_(details.index_heads),
      width_(details.index_dim),
      ratio_(kind.ratio),
      compressor_(loader, backend, prefix + "compressor.", planned + "compressor.fused_wkv_wgate", kind,
                  details.index_dim, eps, max_rows),
      queries_(loader.linear(planned + "wq_b")),
      weights_(loader.linear(planned + "weights_proj")),
      projected_queries_(backend.allocate(backend.activation_type(), max_rows, queries_->n())),
      projected_weights_(backend.allocate(DType::f32, max_rows, weights_->n())),
      chosen_(backend.allocate(DType::i32, max_rows, details.index_topk)) {}

Tensor Indexer::forward(const Tensor& x, const Tensor& low, const LatentAngles& angles, const Batch& batch,
                        const EntryCache& cache) {
  const Tensor queries = projected_queries_.tensor.row_range(0, x.rows);
  const Tensor weights = projected_weights_.tensor.row_range(0, x.rows);
  const Tensor chosen = chosen_.tensor.row_range(0, x.rows);
  compressor_.forward(x, angles.frequencies, batch, cache);
  backend_.linear(*queries_, low, queries);
  backend_.rope_tails(queries, width_, angles.forward);
  backend_.linear(*weights_, x, weights);
  // The published scores have positive factors besides, which do not change the choice.
  backend_.select_entries(
      {.q = queries, .weights = weights, .heads = heads_, .ratio = ratio_, .keys = cache.entry_rows()}, batch, chosen);
  return chosen;
}

}  // namespace qpn8
