#include "model/attention_block.hpp"

#include <cmath>

namespace qpn8 {

AttentionBlock::AttentionBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix,
                               std::int64_t layer, const AttentionOptions& options, std::int64_t window,
                               std::int64_t max_rows)
    : backend_(backend),
      layer_(layer),
      options_(options),
      shape_{.heads = options.heads,
             .kv_heads = options.kv_heads,
             .head_dim = options.head_dim,
             .scale = 1.0F / std::sqrt(static_cast<float>(options.head_dim)),
             .window = window},
      qkv_(loader.linear(prefix + "qkv_proj")),
      o_(loader.linear(prefix + "o_proj")) {
  if (options.qk_norm) {
    q_norm_ = loader.row(prefix + "q_norm.weight", options.head_dim);
    k_norm_ = loader.row(prefix + "k_norm.weight", options.head_dim);
  }
  projected_ = backend.allocate(backend.activation_type(), max_rows, qkv_->n());
  attended_ = backend.allocate(backend.activation_type(), max_rows, options.heads * options.head_dim);
}

void AttentionBlock::forward(ResidualStream& stream, const RowNorm& norm, const Tensor& angles, const Batch& batch,
                             KvCache& cache) {
  const std::int64_t q_width = options_.heads * options_.head_dim;
  const std::int64_t kv_width = options_.kv_heads * options_.head_dim;
  const Tensor projected = projected_.tensor.row_range(0, batch.rows);
  const Tensor attended = attended_.tensor.row_range(0, batch.rows);
  const Tensor q = projected.col_range(0, q_width);
  const Tensor k = projected.col_range(q_width, kv_width);
  const Tensor v = projected.col_range(q_width + kv_width, kv_width);

  backend_.linear_normalised(stream, norm, *qkv_, projected);
  const HeadInputs heads = {.q = q,
                            .k = k,
                            .v = v,
                            .head_dim = options_.head_dim,
                            .q_norm = options_.qk_norm ? &q_norm_.tensor : nullptr,
                            .k_norm = options_.qk_norm ? &k_norm_.tensor : nullptr,
                            .eps = options_.eps,
                            .angles = angles,
                            .pairing = RopePairing::halves};
  backend_.attend(cache, layer_, heads, batch, shape_, attended);
  backend_.linear_added(*o_, attended, stream);
}

}  // namespace qpn8
