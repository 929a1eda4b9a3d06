#include "model/delta_block.hpp"

namespace qpn8 {

DeltaBlock::DeltaBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix,
                       const HybridConfig& details, float eps, std::int64_t max_rows)
    : backend_(backend),
      details_(details),
      eps_(eps),
      in_(loader.linear(prefix + "in_proj_qkvz")),
      gates_(loader.linear(prefix + "in_proj_ba")),
      out_(loader.linear(prefix + "out_proj")),
      taps_(loader.conv_taps(prefix + "conv1d.weight", details.conv_channels(), details.conv_taps)),
      decay_log_(loader.row(prefix + "A_log", details.value_heads)),
      decay_bias_(loader.row(prefix + "dt_bias", details.value_heads)),
      norm_(loader.row(prefix + "norm.weight", details.value_dim)),
      projected_(backend.allocate(backend.activation_type(), max_rows, in_->n() + gates_->n())),
      convolved_(backend.allocate(backend.activation_type(), max_rows, details.conv_channels())),
      recalled_(backend.allocate(backend.activation_type(), max_rows, out_->k())) {}

DeltaCache DeltaBlock::make_cache(int slots) const {
  const std::int64_t kept = details_.conv_taps - 1;
  return {backend_.allocate(DType::f32, slots * kept, details_.conv_channels()),
          backend_.allocate(DType::f32, slots * details_.value_heads, details_.key_dim * details_.value_dim)};
}

void DeltaBlock::forward(const Tensor& x, const Batch& batch, const DeltaCache& cache, const Tensor& out) {
  const Tensor projected = projected_.tensor.row_range(0, x.rows);
  const Tensor convolved = convolved_.tensor.row_range(0, x.rows);
  const Tensor recalled = recalled_.tensor.row_range(0, x.rows);
  const std::int64_t channels = details_.conv_channels();
  const Tensor qkvz = projected.col_range(0, in_->n());
  const Tensor ba = projected.col_range(in_->n(), gates_->n());

  backend_.linear_pair(*in_, *gates_, x, qkvz, ba);
  backend_.causal_conv({.x = projected.col_range(0, channels),
                        .weights = taps_.tensor,
                        .dilation = 1,
                        .history = {cache.history.tensor, details_.conv_taps - 1}},
                       batch, convolved);
  backend_.delta_rule({.qkv = convolved,
                       .b = ba.col_range(0, details_.value_heads),
                       .a = ba.col_range(details_.value_heads, details_.value_heads),
                       .decay_log = decay_log_.tensor,
                       .decay_bias = decay_bias_.tensor,
                       .key_heads = details_.key_heads,
                       .value_heads = details_.value_heads,
                       .key_dim = details_.key_dim,
                       .value_dim = details_.value_dim,
                       .states = {cache.states.tensor, details_.value_heads}},
                      batch, recalled);
  const Tensor z = projected.col_range(channels, recalled.cols);
  backend_.gated_rms_norm(recalled, norm_.tensor, eps_, z, details_.silu_gate ? GateKind::silu : GateKind::sigmoid);
  backend_.linear(*out_, recalled, out);
}

}  // namespace qpn8
