#include "backend/backend.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

struct OperatorName {
  Operator op;
  std::string_view name;
};

constexpr std::array kOperatorNames = {
    OperatorName{Operator::grouped_linear, "grouped linear"},
    OperatorName{Operator::limited_swiglu, "limited swiglu"},
    OperatorName{Operator::rope_tails, "rope tails"},
    OperatorName{Operator::store_rows, "store rows"},
    OperatorName{Operator::pool_rows, "pool rows"},
    OperatorName{Operator::select_entries, "select entries"},
    OperatorName{Operator::latent_attention, "latent attention"},
    OperatorName{Operator::score_experts, "score experts"},
    OperatorName{Operator::add, "add"},
    OperatorName{Operator::residual_streams, "residual streams"},
    OperatorName{Operator::causal_conv, "causal convolution"},
    OperatorName{Operator::delta_rule, "delta rule"},
    OperatorName{Operator::gates, "gates"},
    OperatorName{Operator::gated_streams, "gated streams"},
    OperatorName{Operator::mean_pool, "mean pool"},
    OperatorName{Operator::block_attention, "block attention"},
    OperatorName{Operator::ngrams, "n-grams"},
};

void lacking() { check(false, "a model asks for the operators that it needs"); }

}  // namespace

std::string_view to_string(Operator op) {
  for (const OperatorName& entry : kOperatorNames) {
    if (entry.op == op) return entry.name;
  }
  check(false, "every operator has a row in kOperatorNames");
  return {};
}

std::vector<WeightPart> rows_of(std::span<const WeightPart> parts, std::int64_t first, std::int64_t count) {
  std::vector<WeightPart> cut;
  std::int64_t begin = 0;  // of the part, among the stacked rows
  for (const WeightPart& part : parts) {
    const std::int64_t from = std::max(first, begin);
    const std::int64_t to = std::min(first + count, begin + part.rows);
    if (from < to) {
      cut.push_back(part);
      cut.back().first_row += from - begin;
      cut.back().rows = to - from;
    }
    begin += part.rows;
  }
  return cut;
}

bool Backend::has(Operator /*op*/) const { return false; }

void Backend::rope_tails(const Tensor& /*x*/, std::int64_t /*head_dim*/, const Tensor& /*angles*/) { lacking(); }

void Backend::store_rows(const Tensor& /*x*/, const Batch& /*batch*/, const SequenceRows& /*store*/) { lacking(); }

void Backend::pool_rows(const PoolInputs& /*inputs*/, const Batch& /*batch*/) { lacking(); }

void Backend::select_entries(const SelectInputs& /*inputs*/, const Batch& /*batch*/, const Tensor& /*chosen*/) {
  lacking();
}

void Backend::latent_attention(const LatentInputs& /*inputs*/, const Batch& /*batch*/, const Tensor& /*out*/) {
  lacking();
}

void Backend::score_experts(const Tensor& /*logits*/, const ExpertScoring& /*scoring*/, const Tensor& /*ids*/,
                            const Tensor& /*weights*/) {
  lacking();
}

void Backend::add(const Tensor& /*x*/, const Tensor& /*delta*/) { lacking(); }

void Backend::stream_weights(const Tensor& /*h*/, const StreamMaps& /*maps*/, const Tensor& /*weights*/) { lacking(); }

void Backend::collapse_streams(const Tensor& /*h*/, const Tensor& /*weights*/, const Tensor& /*x*/) { lacking(); }

void Backend::expand_streams(const Tensor& /*h*/, const Tensor& /*weights*/, const Tensor& /*y*/) { lacking(); }

void Backend::causal_conv(const ConvInputs& /*inputs*/, const Batch& /*batch*/, const Tensor& /*out*/) { lacking(); }

void Backend::delta_rule(const DeltaInputs& /*inputs*/, const Batch& /*batch*/, const Tensor& /*out*/) { lacking(); }

void Backend::gated_rms_norm(const Tensor& /*x*/, const Tensor& /*weight*/, float /*eps*/, const Tensor& /*gate*/,
                             GateKind /*kind*/) {
  lacking();
}

void Backend::multiply_by_gate(const Tensor& /*x*/, const Tensor& /*gate*/) { lacking(); }

void Backend::add_gated(const Tensor& /*x*/, const Tensor& /*delta*/, const Tensor& /*gate*/) { lacking(); }

void Backend::normalise_streams(const Tensor& /*h*/, const Tensor& /*weight*/, std::int64_t /*streams*/, float /*eps*/,
                                const Tensor& /*out*/) {
  lacking();
}

void Backend::scaled_silu(const Tensor& /*x*/, float /*factor*/) { lacking(); }

void Backend::mix_streams(const Tensor& /*normed*/, const Tensor& /*gates*/, const Tensor& /*x*/) { lacking(); }

void Backend::inject_streams(const Tensor& /*h*/, const Tensor& /*gates*/, const Tensor& /*y*/) { lacking(); }

void Backend::gate_values(const Tensor& /*keys*/, const Tensor& /*queries*/, const Tensor& /*value*/,
                          const Tensor& /*out*/) {
  lacking();
}

void Backend::mean_pool(const MeanPoolInputs& /*inputs*/, const Batch& /*batch*/) { lacking(); }

void Backend::block_attention(const KvCache& /*cache*/, std::int64_t /*layer*/, const Tensor& /*q*/,
                              const Batch& /*batch*/, const Tensor& /*chosen*/, const BlockAttentionShape& /*shape*/,
                              const Tensor& /*out*/) {
  lacking();
}

std::unique_ptr<NgramEmbedding> Backend::load_ngrams(const NgramSource& /*source*/) {
  lacking();
  return nullptr;
}

void Backend::embed_ngrams(const NgramEmbedding& /*table*/, const Tensor& /*history*/, const Batch& /*batch*/,
                           const Tensor& /*out*/) {
  lacking();
}

void Backend::linear_pair(const Linear& large, const Linear& small, const Tensor& x, const Tensor& y,
                          const Tensor& y_small) {
  linear(large, x, y);
  linear(small, x, y_small);
}

void Backend::linear_mixed(const Linear& weight, const Tensor& low, const Tensor& normed, const Tensor& gates,
                           const Tensor& x) {
  linear(weight, low, gates);
  mix_streams(normed, gates, x);
}

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
  swiglu(gate_up, 0.0F, out);
}

void Backend::linear_added(const Linear& weight, const Tensor& x, ResidualStream& stream) {
  check(!stream.pending, "the last block's sum has been added");
  linear(weight, x, stream.delta);
  stream.pending = true;
}

void Backend::require_room(const Plan& /*plan*/) {}

void Backend::forget_steps() {}

void Backend::run_step(const Batch& /*batch*/, int /*variant*/, const std::function<void()>& step) { step(); }

void require_operators(const Backend& backend, std::span<const Operator> operators, std::string_view who) {
  std::vector<std::string_view> missing;
  for (const Operator op : operators) {
    if (!backend.has(op)) missing.push_back(to_string(op));
  }
  if (missing.empty()) return;
  throw Error(Error::missing_capability,
              fmt::format("{} on {}: these operators are not there yet: {}; --device cpu has them", who,
                          to_string(backend.hardware()), fmt::join(missing, ", ")));
}

}  // namespace qpn8
