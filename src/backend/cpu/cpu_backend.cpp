#include "backend/cpu_backend.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string>

#include "backend/cpu/experts.hpp"
#include "backend/cpu/kv_cache.hpp"
#include "backend/cpu/load_linear.hpp"
#include "backend/cpu/memory.hpp"
#include "backend/cpu/ngram_embedding.hpp"
#include "backend/cpu/weight_part.hpp"
#include "base/check.hpp"
#include "kernels/cpu/add_rows.hpp"
#include "kernels/cpu/argmax.hpp"
#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/block_attention.hpp"
#include "kernels/cpu/causal_conv.hpp"
#include "kernels/cpu/delta_rule.hpp"
#include "kernels/cpu/embed.hpp"
#include "kernels/cpu/find_non_finite.hpp"
#include "kernels/cpu/gated_streams.hpp"
#include "kernels/cpu/gates.hpp"
#include "kernels/cpu/gather_rows.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/hyper_connection.hpp"
#include "kernels/cpu/latent_attention.hpp"
#include "kernels/cpu/mean_pool.hpp"
#include "kernels/cpu/pool_rows.hpp"
#include "kernels/cpu/rms_norm.hpp"
#include "kernels/cpu/rope.hpp"
#include "kernels/cpu/route_experts.hpp"
#include "kernels/cpu/row_store.hpp"
#include "kernels/cpu/score_experts.hpp"
#include "kernels/cpu/select_entries.hpp"
#include "kernels/cpu/shared_launch.hpp"
#include "kernels/cpu/swiglu.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

MatrixView<float> floats(const Tensor& tensor) {
  check(tensor.dtype == DType::f32, "activations are F32");
  return tensor.host<float>();
}

MatrixView<std::int32_t> integers(const Tensor& tensor) {
  check(tensor.dtype == DType::i32, "ids and positions are I32");
  return tensor.host<std::int32_t>();
}

/// A column of integers without gaps.
std::span<std::int32_t> column(const Tensor& tensor) {
  check(tensor.cols == 1 && (tensor.stride == 1 || tensor.rows <= 1), "a column without gaps");
  return {integers(tensor).data, static_cast<std::size_t>(tensor.rows)};
}

std::span<const float> single_row(const Tensor& tensor) {
  check(tensor.rows == 1, "one row");
  return floats(tensor).row(0);
}

MatrixView<std::byte> bytes_of(const Tensor& tensor) {
  const auto width = static_cast<std::int64_t>(size_of(tensor.dtype));
  return {tensor.data, tensor.rows, tensor.cols * width, tensor.stride * width};
}

/// Rows of sequences as the kernels see them.
cpu::RowStore store_of(const SequenceRows& kept) {
  if (kept.per_slot == 0) return {};
  check(kept.rows.stride == kept.rows.cols && kept.rows.rows % kept.per_slot == 0 &&
            (kept.rows.dtype == DType::f32 || kept.rows.dtype == DType::f16),
        "kept rows have no gaps and are F16 or F32");
  return {kept.rows.dtype, kept.rows.data, kept.rows.rows / kept.per_slot, kept.per_slot, kept.rows.cols};
}

cpu::RowPlaces places_of(const Batch& batch) { return {column(batch.slots), column(batch.positions)}; }

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : team_(cpu_threads(options.threads)), workspace_(options.workspace_bytes) {
    cpu::use_isa(options.isa);
    hardware_ = {.kind = HardwareKind::cpu, .isa = std::string(cpu::to_string(cpu::current_isa()))};
  }

  const Hardware& hardware() const override { return hardware_; }
  DType activation_type() const override { return DType::f32; }
  bool has(Operator /*op*/) const override { return true; }

  OwnedTensor allocate(DType dtype, std::int64_t rows, std::int64_t cols) override {
    const auto width = static_cast<std::int64_t>(size_of(dtype));
    const std::string what = fmt::format("a tensor [{}, {}] of {}", rows, cols, to_string(dtype));
    auto memory =
        std::make_unique<cpu::HostMemory>(cpu::allocate_buffer(cpu::size_product({rows, cols, width}, what), what));
    return {{dtype, rows, cols, cols, memory->data()}, std::move(memory)};
  }

  void write(const Tensor& target, std::span<const std::byte> source) override {
    const MatrixView<std::byte> rows = bytes_of(target);
    check(static_cast<std::int64_t>(source.size()) == rows.rows * rows.cols, "as many bytes as the tensor has");
    for (std::int64_t i = 0; i < rows.rows && rows.cols > 0; ++i) {
      std::memcpy(rows.row(i).data(), source.data() + i * rows.cols, rows.row(i).size());
    }
  }

  void read(const Tensor& source, std::span<std::byte> target) override {
    const MatrixView<std::byte> rows = bytes_of(source);
    check(static_cast<std::int64_t>(target.size()) == rows.rows * rows.cols, "as many bytes as the tensor has");
    for (std::int64_t i = 0; i < rows.rows && rows.cols > 0; ++i) {
      std::memcpy(target.data() + i * rows.cols, rows.row(i).data(), rows.row(i).size());
    }
  }

  std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape) override {
    return std::make_unique<cpu::CpuKvCache>(shape);
  }

  std::unique_ptr<Linear> load_linear(const LinearSource& source) override {
    cpu::check_parts(source);
    cpu::check_bias(source);
    check_workspace(source.plan->name, source.plan->tensor.k);
    return cpu::load_linear(source, team_);
  }

  std::unique_ptr<Linear> share_linear(const Tensor& weight) override {
    check(weight.stride == weight.cols, "a shared weight has no gaps");
    check_workspace("the shared LM head", weight.cols);
    const cpu::DenseWeightView view = {.dtype = weight.dtype, .data = weight.data, .n = weight.rows, .k = weight.cols};
    return std::make_unique<cpu::DenseLinear>(view, Buffer(), std::vector<float>());
  }

  OwnedTensor load_table(const Checkpoint& checkpoint, const CheckpointTensor& tensor) override {
    return cpu::load_table(checkpoint, tensor, team_);
  }

  void embed(const Tensor& table, const Tensor& ids, const Tensor& out) override {
    const std::span<const std::int32_t> rows = column(ids);
    check(static_cast<std::int64_t>(rows.size()) == out.rows && table.cols == out.cols, "a row is found for every id");
    for (const std::int32_t id : rows) check(id >= 0 && id < table.rows, "ids are in range");
    cpu::embed({table.dtype, table.data, table.rows, table.cols, table.stride}, rows, floats(out), team_);
  }

  void gather_rows(const Tensor& in, const Tensor& rows, const Tensor& out) override {
    check(in.dtype == out.dtype, "rows keep their type");
    for (const std::int32_t row : column(rows)) check(row >= 0 && row < in.rows, "rows are in range");
    cpu::gather_rows(bytes_of(in), column(rows), bytes_of(out), team_);
  }

  void linear(const Linear& weight, const Tensor& x, const Tensor& y) override {
    static_cast<const cpu::CpuLinear&>(weight).apply(floats(x), floats(y), products());
  }

  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    cpu::rms_norm(floats(x), single_row(weight), eps, floats(out), team_);
  }

  void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& weight, float eps,
                    const Tensor& out) override {
    cpu::add_rms_norm(floats(residual), floats(delta), single_row(weight), eps, floats(out), team_);
  }

  void head_rms_norm(const Tensor& x, const Tensor& weight, float eps) override {
    cpu::head_rms_norm(floats(x), single_row(weight), eps, team_);
  }

  void rope_angles(const Tensor& positions, const Tensor& frequencies, float scale, const Tensor& angles) override {
    cpu::rope_angles(column(positions), single_row(frequencies), scale, floats(angles), team_);
  }

  void rope(const Tensor& x, std::int64_t head_dim, const Tensor& angles, RopePairing pairing) override {
    const auto rotate = pairing == RopePairing::halves ? cpu::rope_halves : cpu::rope_interleaved;
    rotate(floats(x), head_dim, floats(angles), team_);
  }

  void append_kv(KvCache& cache, std::int64_t layer, const Tensor& k, const Tensor& v, const Batch& batch) override {
    cpu::append_kv(static_cast<cpu::CpuKvCache&>(cache).layer(layer), floats(k), floats(v), places_of(batch), team_);
  }

  void attention(const KvCache& cache, std::int64_t layer, const Tensor& q, const Batch& batch,
                 const AttentionShape& shape, const Tensor& out) override {
    const cpu::KvLayer kv = static_cast<const cpu::CpuKvCache&>(cache).layer(layer);
    check(shape.kv_heads == kv.kv_heads && shape.head_dim == kv.head_dim, "attention fits the cache");
    const cpu::AttentionRule rule = {.heads = shape.heads, .scale = shape.scale, .window = shape.window};
    cpu::attention(kv, floats(q), places_of(batch), rule, attention_, floats(out), team_);
  }

  void swiglu(const Tensor& gate_up, float limit, const Tensor& out) override {
    cpu::swiglu(floats(gate_up), floats(out), team_, limit);
  }

  void route_experts(const Tensor& logits, bool normalise, const Tensor& ids, const Tensor& weights) override {
    cpu::route_experts(floats(logits), normalise, integers(ids), floats(weights), team_);
  }

  void experts(const ExpertWeights& weights, const Tensor& x, const Tensor& ids, const Tensor& route_weights,
               const Tensor& out) override {
    experts_.run(weights, floats(x), integers(ids), floats(route_weights), floats(out), products());
  }

  void find_non_finite(const Tensor& x, const Tensor& out) override {
    cpu::find_non_finite(floats(x), column(out), team_);
  }

  void argmax(const Tensor& x, const Tensor& out) override {
    const std::span<std::int32_t> found = column(out);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      const std::optional<std::size_t> best = cpu::argmax(floats(x).row(row));
      found[static_cast<std::size_t>(row)] = best ? static_cast<std::int32_t>(*best) : -1;
    }
  }

  void rope_tails(const Tensor& x, std::int64_t head_dim, const Tensor& angles) override {
    cpu::rope_tails(floats(x), head_dim, floats(angles), team_);
  }

  void store_rows(const Tensor& x, const Batch& batch, const SequenceRows& store) override {
    cpu::store_rows(floats(x), places_of(batch), store_of(store), team_);
  }

  void pool_rows(const PoolInputs& inputs, const Batch& batch) override {
    const cpu::PoolRule rule = {.ratio = inputs.ratio, .overlaps = inputs.overlaps, .eps = inputs.eps};
    const cpu::PoolWeights weights = {.gate_bias = floats(inputs.gate_bias),
                                      .norm = single_row(inputs.norm),
                                      .frequencies = single_row(inputs.frequencies)};
    cpu::pool_rows(floats(inputs.x), places_of(batch), rule, weights, store_of(inputs.pending),
                   store_of(inputs.entries), pooled_.matrix(inputs.x.rows, inputs.norm.cols), team_);
  }

  void select_entries(const SelectInputs& inputs, const Batch& batch, const Tensor& chosen) override {
    cpu::select_entries(floats(inputs.q), floats(inputs.weights), places_of(batch), store_of(inputs.keys),
                        {.heads = inputs.heads, .ratio = inputs.ratio}, selection_, integers(chosen), team_);
  }

  void latent_attention(const LatentInputs& inputs, const Batch& batch, const Tensor& out) override {
    const cpu::LatentSources sources = {.window = store_of(inputs.window),
                                        .entries = store_of(inputs.entries),
                                        .chosen = integers(inputs.chosen),
                                        .sinks = single_row(inputs.sinks)};
    const cpu::LatentRule rule = {
        .heads = inputs.heads, .window = inputs.window_size, .ratio = inputs.ratio, .scale = inputs.scale};
    cpu::latent_attention(floats(inputs.q), places_of(batch), sources, rule, latent_, floats(out), team_);
  }

  void score_experts(const Tensor& logits, const ExpertScoring& scoring, const Tensor& ids,
                     const Tensor& weights) override {
    const std::span<const float> bias = scoring.bias != nullptr ? single_row(*scoring.bias) : std::span<const float>();
    cpu::score_experts(floats(logits), {.bias = bias, .ids_given = scoring.ids_given, .scale = scoring.scale},
                       integers(ids), floats(weights), team_);
  }

  void add(const Tensor& x, const Tensor& delta) override { cpu::add_rows(floats(x), floats(delta), team_); }

  void stream_weights(const Tensor& h, const StreamMaps& maps, const Tensor& weights) override {
    const cpu::StreamRule rule = {
        .streams = maps.streams, .sinkhorn_steps = maps.sinkhorn_steps, .eps = maps.eps, .norm_eps = maps.norm_eps};
    cpu::stream_weights(floats(h), {floats(maps.z), single_row(maps.base), single_row(maps.scale)}, rule,
                        floats(weights), team_);
  }

  void collapse_streams(const Tensor& h, const Tensor& weights, const Tensor& x) override {
    cpu::collapse_streams(floats(h), floats(weights), floats(x), team_);
  }

  void expand_streams(const Tensor& h, const Tensor& weights, const Tensor& y) override {
    cpu::expand_streams(floats(h), floats(weights), floats(y), team_);
  }

  void causal_conv(const ConvInputs& inputs, const Batch& batch, const Tensor& out) override {
    cpu::causal_conv(floats(inputs.x), places_of(batch), floats(inputs.weights), inputs.dilation,
                     store_of(inputs.history), floats(out), team_);
  }

  void delta_rule(const DeltaInputs& inputs, const Batch& batch, const Tensor& out) override {
    const cpu::DeltaShape shape = {.key_heads = inputs.key_heads,
                                   .value_heads = inputs.value_heads,
                                   .key_dim = inputs.key_dim,
                                   .value_dim = inputs.value_dim};
    const cpu::DeltaInputs operands = {.qkv = floats(inputs.qkv),
                                       .b = floats(inputs.b),
                                       .a = floats(inputs.a),
                                       .decay_log = single_row(inputs.decay_log),
                                       .decay_bias = single_row(inputs.decay_bias)};
    cpu::delta_rule(operands, places_of(batch), shape, store_of(inputs.states), delta_, floats(out), team_);
  }

  void gated_rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& gate, GateKind kind) override {
    const cpu::Gate opened = kind == GateKind::silu ? cpu::Gate::silu : cpu::Gate::sigmoid;
    cpu::gated_rms_norm(floats(x), single_row(weight), eps, floats(gate), opened, team_);
  }

  void multiply_by_gate(const Tensor& x, const Tensor& gate) override {
    cpu::multiply_by_gate(floats(x), floats(gate), team_);
  }

  void add_gated(const Tensor& x, const Tensor& delta, const Tensor& gate) override {
    cpu::add_gated_rows(floats(x), floats(delta), floats(gate), team_);
  }

  void normalise_streams(const Tensor& h, const Tensor& weight, std::int64_t streams, float eps,
                         const Tensor& out) override {
    cpu::normalise_streams(floats(h), single_row(weight), streams, eps, floats(out), team_);
  }

  void scaled_silu(const Tensor& x, float factor) override { cpu::scaled_silu(floats(x), factor, team_); }

  void mix_streams(const Tensor& normed, const Tensor& gates, const Tensor& x) override {
    cpu::mix_streams(floats(normed), floats(gates), floats(x), team_);
  }

  void inject_streams(const Tensor& h, const Tensor& gates, const Tensor& y) override {
    cpu::inject_streams(floats(h), floats(gates), floats(y), team_);
  }

  void gate_values(const Tensor& keys, const Tensor& queries, const Tensor& value, const Tensor& out) override {
    cpu::gate_values(floats(keys), floats(queries), floats(value), floats(out), team_);
  }

  void mean_pool(const MeanPoolInputs& inputs, const Batch& batch) override {
    const cpu::MeanPoolRule rule = {.ratio = inputs.ratio,
                                    .eps = inputs.eps,
                                    .norm = single_row(inputs.norm),
                                    .frequencies = single_row(inputs.frequencies)};
    cpu::mean_pool(floats(inputs.x), places_of(batch), rule, store_of(inputs.pending), store_of(inputs.entries),
                   pooled_.matrix(inputs.x.rows, inputs.x.cols), team_);
  }

  void block_attention(const KvCache& cache, std::int64_t layer, const Tensor& q, const Batch& batch,
                       const Tensor& chosen, const BlockAttentionShape& shape, const Tensor& out) override {
    const cpu::KvLayer kv = static_cast<const cpu::CpuKvCache&>(cache).layer(layer);
    const AttentionShape& attention = shape.attention;
    check(attention.kv_heads == kv.kv_heads && attention.head_dim == kv.head_dim && attention.window == 0,
          "attention fits the cache");
    // Rows at positions below this see all blocks before them: plain attention, which shares what it reads.
    const std::int64_t everything = (chosen.cols + 1) * shape.block - 1;
    const cpu::AttentionRule all = {.heads = attention.heads, .scale = attention.scale};
    const cpu::BlockAttentionRule some = {.heads = attention.heads, .block = shape.block, .scale = attention.scale};
    const cpu::RowPlaces places = places_of(batch);
    for (std::int64_t first = 0; first < q.rows;) {
      const std::int64_t end = end_of_run(places.positions, first, everything);
      const auto from = static_cast<std::size_t>(first);
      const auto count = static_cast<std::size_t>(end - first);
      const cpu::RowPlaces part = {places.slots.subspan(from, count), places.positions.subspan(from, count)};
      const MatrixView<const float> queries = floats(q).row_range(first, end - first);
      const MatrixView<float> results = floats(out).row_range(first, end - first);
      if (places.positions[from] < everything) {
        cpu::attention(kv, queries, part, all, attention_, results, team_);
      } else {
        cpu::block_attention(kv, queries, part, integers(chosen).row_range(first, end - first), some, blocks_, results,
                             team_);
      }
      first = end;
    }
  }

  void linear_pair(const Linear& large, const Linear& small, const Tensor& x, const Tensor& y,
                   const Tensor& y_small) override {
    const auto* packed = packed_alone(large, x.rows);
    const auto* dense = dynamic_cast<const cpu::DenseLinear*>(&small);
    if (packed == nullptr || dense == nullptr || dense->has_bias())
      return Backend::linear_pair(large, small, x, y, y_small);
    cpu::qpn8_linear_and_dense(packed->weight(), packed->schedule(), dense->weight(), floats(x), floats(y),
                               floats(y_small), workspace_, team_);
  }

  void linear_mixed(const Linear& weight, const Tensor& low, const Tensor& normed, const Tensor& gates,
                    const Tensor& x) override {
    const auto* packed = packed_alone(weight, 1);
    if (low.rows != 1 || packed == nullptr || x.cols % kTileColumns != 0) {
      return Backend::linear_mixed(weight, low, normed, gates, x);
    }
    cpu::qpn8_linear_and_mix(packed->weight(), packed->schedule(), floats(low), floats(normed), floats(gates),
                             floats(x), workspace_, team_);
  }

  std::unique_ptr<NgramEmbedding> load_ngrams(const NgramSource& source) override { return cpu::load_ngrams(source); }

  void embed_ngrams(const NgramEmbedding& table, const Tensor& history, const Batch& batch,
                    const Tensor& out) override {
    static_cast<const cpu::CpuNgramEmbedding&>(table).embed(column(batch.ids), places_of(batch), column(history),
                                                            floats(out), team_);
  }

 private:
  /// The weight if its packed product of so many rows needs nothing done before or after it; else null.
  static const cpu::PackedLinear* packed_alone(const Linear& weight, std::int64_t rows) {
    const auto* packed = dynamic_cast<const cpu::PackedLinear*>(&weight);
    const bool alone =
        packed != nullptr && rows >= 1 && rows <= kMaxPackedRows && !packed->is_padded() && !packed->has_bias();
    return alone ? packed : nullptr;
  }

  /// Neighbouring rows of a batch, [first, end), that block_attention() takes the same way.
  static std::int64_t end_of_run(std::span<const std::int32_t> positions, std::int64_t first, std::int64_t everything) {
    const auto sees_all = [&](std::int64_t t) { return positions[static_cast<std::size_t>(t)] < everything; };
    std::int64_t end = first + 1;
    while (end < static_cast<std::int64_t>(positions.size()) && sees_all(end) == sees_all(first)) ++end;
    return end;
  }

  cpu::ProductContext products() { return {workspace_, padded_, team_}; }

  /// Now, because a prompt would find out only when it is long enough.
  void check_workspace(const std::string& name, std::int64_t k) const {
    const std::size_t needed = cpu::gemm_workspace_bytes(k, team_.size());
    if (needed <= workspace_.capacity()) return;
    throw Error(
        Error::missing_capability,
        fmt::format("{}: products of K={} by {} threads need {} bytes of workspace, there are {}; fewer threads "
                    "or a larger workspace are needed",
                    name, k, team_.size(), needed, workspace_.capacity()));
  }

  Hardware hardware_;
  ThreadTeam team_;
  Workspace workspace_;
  cpu::Scratch padded_;
  cpu::Scratch pooled_;
  cpu::AttentionScratch attention_;
  cpu::LatentScratch latent_;
  cpu::SelectScratch selection_;
  cpu::DeltaScratch delta_;
  cpu::BlockAttentionScratch blocks_;
  cpu::ExpertRunner experts_;
};

}  // namespace

int cpu_threads(int wanted) {
  if (wanted < 0) {
    throw Error(Error::bad_argument,
                fmt::format("--threads {}: 1 or more are needed, or 0 for one a processor", wanted));
  }
  return wanted > 0 ? wanted : processor_count();
}

std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace qpn8
