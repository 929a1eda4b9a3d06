#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/batch.hpp"
#include "backend/tensor.hpp"
#include "checkpoint/checkpoint.hpp"
#include "qpn8/contract.hpp"
#include "route/plan.hpp"

namespace qpn8 {

/// The weight of one projection on a device, packed or dense; made by Backend::load_linear.
class Linear {
 public:
  Linear() = default;
  virtual ~Linear() = default;
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  virtual std::int64_t k() const = 0;  ///< columns of x, those of all groups
  virtual std::int64_t n() const = 0;  ///< columns of y, those of all groups
  /// Independent products side by side: columns [g k / groups, (g + 1) k / groups) of x give those of y.
  virtual std::int64_t groups() const { return 1; }
  /// Bytes of weights and scales that one product reads.
  virtual std::int64_t bytes() const = 0;
};

/// Multiply-adds of one row's product.
inline std::int64_t products(const Linear& linear) { return linear.k() * linear.n() / linear.groups(); }

/// A rectangle of a checkpoint tensor: the rows and columns that this rank holds.
struct WeightPart {
  const CheckpointTensor* weight = nullptr;  ///< FP4: two columns a byte (U8 or I8), the even one in the low half
  /// FP8 weights: FP32 or E8M0, one a block of 128 x 128. FP4 weights: E8M0, one a row and 32 columns.
  const CheckpointTensor* block_scales = nullptr;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t first_col = 0;
  std::int64_t cols = 0;
};

/// Everything needed to load one projection: its parts stacked by rows (q, k and v; gate and up; or the groups).
struct LinearSource {
  const PlannedProjection* plan = nullptr;  ///< the route, the schedule, the shape
  const Checkpoint* checkpoint = nullptr;
  std::vector<WeightPart> parts;
  std::vector<float> bias;  ///< n values, or empty
  /// Two parts of as many rows, gate and up, which linear_gated() multiplies by: a device may keep them interleaved.
  bool gated = false;
  std::int64_t zero_rows = 0;  ///< behind the parts: a shape that kernels know, for fewer outputs
};

/// Rows [first, first + count) of stacked parts.
std::vector<WeightPart> rows_of(std::span<const WeightPart> parts, std::int64_t first, std::int64_t count);

struct KvShape {
  std::int64_t layers = 0;
  int slots = 1;              ///< sequences
  std::int64_t capacity = 0;  ///< positions a sequence
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  DType dtype = DType::f16;  ///< f16 or f32
};

/// Keys and values of all layers; its layout is the backend's own.
class KvCache {
 public:
  KvCache() = default;
  virtual ~KvCache() = default;
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  virtual const KvShape& shape() const = 0;
  virtual std::int64_t bytes() const = 0;
};

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  float scale = 1.0F;       ///< multiplies q.k
  std::int64_t window = 0;  ///< a token sees itself and the window - 1 tokens before it; 0: all before it
};

/// Where the dimensions of a rotated pair lie.
enum class RopePairing : std::uint8_t {
  halves,       ///< (i, i + d/2)
  interleaved,  ///< (2 i, 2 i + 1)
};

/// Operands of Backend::prepare_heads: q [rows, heads * head_dim], k and v [rows, kv_heads * head_dim].
struct HeadInputs {
  Tensor q;
  Tensor k;
  Tensor v;
  std::int64_t head_dim = 0;
  const Tensor* q_norm = nullptr;  ///< [1, head_dim], or null: not normalised
  const Tensor* k_norm = nullptr;
  float eps = 0.0F;
  Tensor angles;
  RopePairing pairing = RopePairing::halves;
};

/// The weights of an RMS norm over a row.
struct RowNorm {
  Tensor weight;  ///< F32 [1, cols]
  float eps = 0.0F;
};

/// The residual stream of a pass. Blocks add to it what they compute; where `pending`, the last block's sum is in
/// `delta` and not yet in `hidden`, because devices add it at different places.
struct ResidualStream {
  Tensor hidden;  ///< [rows, d]
  Tensor delta;   ///< scratch of that shape
  Tensor normed;  ///< the same
  bool pending = false;
};

/// The feed-forward experts of one layer.
struct ExpertWeights {
  std::vector<std::unique_ptr<Linear>> gate_up;  ///< [2 I, D] each, gate rows first
  std::vector<std::unique_ptr<Linear>> down;     ///< [D, I] each
  float limit = 0.0F;                            ///< of Backend::swiglu
};

/// Rows that a layer keeps of every sequence: [slots * per_slot, width], F16 or F32. The model allocates them.
struct SequenceRows {
  Tensor rows;
  std::int64_t per_slot = 0;
};

/// Operands of Backend::pool_rows: x [rows, 2 channels], values and then gates; channels is the entries' width, or
/// twice that where windows overlap, the first half being for the entry after the token's own.
struct PoolInputs {
  Tensor x;
  std::int64_t ratio = 1;  ///< tokens an entry
  bool overlaps = false;   ///< an entry takes in the window before its own too
  float eps = 0.0F;
  Tensor gate_bias;      ///< F32 [ratio, channels], of the position modulo ratio
  Tensor norm;           ///< F32 [1, width]
  Tensor frequencies;    ///< F32 [1, r / 2]: the last r dimensions are rotated
  SequenceRows pending;  ///< F32, as wide as x, as many as an entry has tokens
  SequenceRows entries;
};

/// Operands of Backend::select_entries: q [rows, heads * width], weights [rows, heads].
struct SelectInputs {
  Tensor q;
  Tensor weights;
  std::int64_t heads = 1;
  std::int64_t ratio = 1;  ///< tokens an entry
  SequenceRows keys;
};

/// Operands of Backend::latent_attention: q [rows, heads * width].
struct LatentInputs {
  Tensor q;
  SequenceRows window;   ///< a ring of positions
  SequenceRows entries;  ///< per_slot 0: there are none
  Tensor chosen;         ///< i32 [rows, k], entries in rising order, then -1; no columns: all that a row sees
  Tensor sinks;          ///< F32 [1, heads], an extra logit a head whose share goes nowhere
  std::int64_t heads = 1;
  std::int64_t window_size = 1;  ///< a row sees itself and the window_size - 1 positions before it
  std::int64_t ratio = 1;        ///< tokens an entry
  float scale = 1.0F;            ///< multiplies q.k, not the sink
};

/// Operands of Backend::causal_conv.
struct ConvInputs {
  Tensor x;        ///< [rows, channels]
  Tensor weights;  ///< F32 [taps, channels], the last tap being the token's own
  std::int64_t dilation = 1;
  SequenceRows history;  ///< F32, channels wide, dilation * (taps - 1) a sequence
};

/// Operands of Backend::delta_rule. Value head h reads key head h / (value_heads / key_heads).
struct DeltaInputs {
  Tensor qkv;         ///< [rows, 2 key_heads * key_dim + value_heads * value_dim]; unspecified afterwards
  Tensor b;           ///< [rows, value_heads]
  Tensor a;           ///< the same
  Tensor decay_log;   ///< F32 [1, value_heads]
  Tensor decay_bias;  ///< the same
  std::int64_t key_heads = 1;
  std::int64_t value_heads = 1;
  std::int64_t key_dim = 1;
  std::int64_t value_dim = 1;
  SequenceRows states;  ///< F32, key_dim * value_dim wide, value_heads a sequence
};

/// What a gate goes through before it multiplies.
enum class GateKind : std::uint8_t { sigmoid, silu };

/// Operands of Backend::mean_pool.
struct MeanPoolInputs {
  Tensor x;                ///< [rows, width]
  std::int64_t ratio = 1;  ///< tokens an entry
  float eps = 0.0F;
  Tensor norm;           ///< F32 [1, width]
  Tensor frequencies;    ///< F32 [1, r / 2]: the first r dimensions are rotated, pairs (i, i + r / 2)
  SequenceRows pending;  ///< F32, as wide as x, ratio a sequence
  SequenceRows entries;
};

/// How Backend::block_attention reads the context.
struct BlockAttentionShape {
  AttentionShape attention;  ///< without a window
  std::int64_t block = 1;    ///< positions a block, from position 0 on
};

/// A table of hashed n-grams; made by Backend::load_ngrams.
class NgramEmbedding {
 public:
  NgramEmbedding() = default;
  virtual ~NgramEmbedding() = default;
  NgramEmbedding(const NgramEmbedding&) = delete;
  NgramEmbedding& operator=(const NgramEmbedding&) = delete;

  virtual std::int64_t width() const = 0;  ///< values a token, of all heads
  virtual std::int64_t bytes_per_token() const = 0;
};

/// What an n-gram table is loaded from. Row of a head for n tokens: the exclusive or of the tokens times their
/// multipliers, modulo the head's size, plus its offset.
struct NgramSource {
  std::vector<const CheckpointTensor*> parts;  ///< stacked by rows; all but the last have as many
  std::vector<std::int64_t> multipliers;       ///< of the token itself, the one before, ...
  std::vector<std::int64_t> sizes;             ///< of each head's rows; as many heads for 2 tokens, for 3, ...
  std::vector<std::int64_t> offsets;
  std::int64_t boundary = 0;  ///< the token that ends a text, which stands for all before it too
};

/// How Backend::score_experts chooses and weighs.
struct ExpertScoring {
  const Tensor* bias = nullptr;  ///< F32 [1, experts], added for the choice alone; null: none
  bool ids_given = false;        ///< ids are there already and only weighed
  float scale = 1.0F;            ///< the sum of a row's weights
};

/// What Backend::stream_weights makes a residual's weights from.
struct StreamMaps {
  Tensor z;      ///< F32 [rows, (2 + n) n], or [rows, n] for the last sum
  Tensor base;   ///< F32 [1, z.cols]
  Tensor scale;  ///< F32 [1, 3], or [1, 1]
  std::int64_t streams = 1;
  std::int64_t sinkhorn_steps = 1;
  float eps = 0.0F;
  float norm_eps = 0.0F;
};

/// Operators that not every backend has; a model asks for those that it needs before it loads a weight.
enum class Operator : std::uint8_t {
  grouped_linear,  ///< load_linear of a projection of several groups
  limited_swiglu,  ///< swiglu and experts with a limit
  rope_tails,
  store_rows,
  pool_rows,
  select_entries,
  latent_attention,
  score_experts,
  add,
  residual_streams,  ///< stream_weights, collapse_streams and expand_streams
  causal_conv,
  delta_rule,
  gates,          ///< gated_rms_norm, multiply_by_gate and add_gated
  gated_streams,  ///< normalise_streams, scaled_silu, mix_streams, inject_streams and gate_values
  mean_pool,
  block_attention,
  ngrams,  ///< load_ngrams and embed_ngrams
};

std::string_view to_string(Operator op);

/// The one seam between models and devices: tensors on a device and the operators of a decoder.
///
/// A model never asks which backend it runs on. Activations are matrices of token rows in activation_type(); weights of
/// norms and biases are FP32 rows. Operators run in the order of the calls; results are visible to the host after
/// read(). Unless said otherwise outputs must not overlap inputs, and shapes that do not fit are our own bug (check()).
/// Every operator fixes its order of summation: the same input gives the same bits, whatever the number of threads.
/// No operator allocates after the first pass of a given shape. One thread at a time.
class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual const Hardware& hardware() const = 0;
  virtual DType activation_type() const = 0;

  /// Whether it has one of the operators that may be missing; those that it lacks are our own bug to call.
  virtual bool has(Operator op) const;

  // --- memory -------------------------------------------------------------------------------------------------------

  /// Zeroed memory, rows contiguous. Error::missing_capability naming the size if the device has no room.
  virtual OwnedTensor allocate(DType dtype, std::int64_t rows, std::int64_t cols) = 0;

  /// Copies host bytes (rows * cols elements of the tensor's type, contiguous) to the device, and back.
  virtual void write(const Tensor& target, std::span<const std::byte> source) = 0;
  virtual void read(const Tensor& source, std::span<std::byte> target) = 0;

  virtual std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape) = 0;

  // --- weights ------------------------------------------------------------------------------------------------------

  /// Called before the first weight is loaded: Error::missing_capability if the plan's weights do not fit into what the
  /// device has free, so that a load that must fail does so before it has begun.
  virtual void require_room(const Plan& plan);

  /// Packs or copies a projection as its plan says; the pages of the checkpoint are released as they are consumed.
  /// Errors name the tensor.
  virtual std::unique_ptr<Linear> load_linear(const LinearSource& source) = 0;

  /// A dense projection that shares the memory of a weight already on the device (an LM head tied to the embedding).
  virtual std::unique_ptr<Linear> share_linear(const Tensor& weight) = 0;

  /// A matrix kept in its stored precision, for embed().
  virtual OwnedTensor load_table(const Checkpoint& checkpoint, const CheckpointTensor& tensor) = 0;

  // --- operators ----------------------------------------------------------------------------------------------------

  /// out[t] = table[ids[t]]; table F32, F16 or BF16 [vocabulary, d]. Ids are in range.
  virtual void embed(const Tensor& table, const Tensor& ids, const Tensor& out) = 0;

  /// out[i] = in[rows[i]]; rows i32 [m, 1].
  virtual void gather_rows(const Tensor& in, const Tensor& rows, const Tensor& out) = 0;

  /// y = x W^T (+ bias). y is in activation_type(), or F32 (logits, router).
  virtual void linear(const Linear& weight, const Tensor& x, const Tensor& y) = 0;

  /// out = x / sqrt(mean(x^2) + eps) * weight, over each row. out may be x.
  virtual void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) = 0;

  /// residual += delta, then out = rms_norm(residual): the two meet at every block's border.
  virtual void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& weight, float eps,
                            const Tensor& out) = 0;

  /// In place: every run of weight.cols values of a row is normalised by itself (q and k norm).
  virtual void head_rms_norm(const Tensor& x, const Tensor& weight, float eps) = 0;

  /// angles[t] = (cos(p_t f_0) s, ..., cos(p_t f_{d/2-1}) s, sin(p_t f_0) s, ...), F32 [rows, d], for the d/2
  /// frequencies (F32 [1, d/2]) and the scale s; computed once a pass and used by every layer.
  virtual void rope_angles(const Tensor& positions, const Tensor& frequencies, float scale, const Tensor& angles) = 0;

  /// In place: rotates the first angles.cols dimensions of every head of x [rows, heads * head_dim].
  virtual void rope(const Tensor& x, std::int64_t head_dim, const Tensor& angles, RopePairing pairing) = 0;

  /// Stores k and v [rows, kv_heads * head_dim] of one layer at the batch's positions.
  virtual void append_kv(KvCache& cache, std::int64_t layer, const Tensor& k, const Tensor& v, const Batch& batch) = 0;

  /// Causal attention of q [rows, heads * head_dim] over what the cache holds, appended rows of this batch included.
  /// Softmax in FP32; head h reads key head h / (heads / kv_heads).
  virtual void attention(const KvCache& cache, std::int64_t layer, const Tensor& q, const Batch& batch,
                         const AttentionShape& shape, const Tensor& out) = 0;

  /// out = silu(gate) * up for gate_up [rows, 2 I], gate columns first; out [rows, I]. With a limit other than 0 the
  /// gate is cut to at most that first, and up to that on either side.
  virtual void swiglu(const Tensor& gate_up, float limit, const Tensor& out) = 0;

  /// Softmax over each row of logits (F32 [rows, experts]), then the top k: ids i32 and weights F32 [rows, k] in order
  /// of falling probability, ties to the lower id; weights divided by their sum if `normalise`.
  virtual void route_experts(const Tensor& logits, bool normalise, const Tensor& ids, const Tensor& weights) = 0;

  /// out[t] = sum over j of weights[t][j] * down_e(swiglu(gate_up_e(x[t]))), e = ids[t][j], summed in order of rising
  /// e.
  virtual void experts(const ExpertWeights& weights, const Tensor& x, const Tensor& ids, const Tensor& route_weights,
                       const Tensor& out) = 0;

  /// out[t] = index of the first non-finite value of row t, or -1 (i32 [rows, 1]).
  virtual void find_non_finite(const Tensor& x, const Tensor& out) = 0;

  /// out[t] = index of the largest value of row t of x (F32), ties to the lower index, or -1 if one is not finite (i32
  /// [rows, 1]).
  virtual void argmax(const Tensor& x, const Tensor& out) = 0;

  // --- operators that a backend may lack ----------------------------------------------------------------------------

  /// In place: rotates the last angles.cols dimensions of every head of x [rows, heads * head_dim], interleaved.
  virtual void rope_tails(const Tensor& x, std::int64_t head_dim, const Tensor& angles);

  /// Row t of x becomes row position % per_slot of its sequence; of rows that meet the last one stays.
  virtual void store_rows(const Tensor& x, const Batch& batch, const SequenceRows& store);

  /// Makes the entries whose last token is in the batch, entry w in row w of its sequence: a softmax over tokens, a
  /// channel at a time in FP32, an rms norm, a rotation by the window's first position. Keeps in `pending` what later
  /// entries need. How tokens are spread over batches changes no bit.
  virtual void pool_rows(const PoolInputs& inputs, const Batch& batch);

  /// For every row the chosen.cols entries (i32, rising, then -1) of those it sees that have the largest
  /// sum over h of weights[h] * max(0, q_h . key); ties to the lower number.
  virtual void select_entries(const SelectInputs& inputs, const Batch& batch, const Tensor& chosen);

  /// Attention whose keys are its values, one vector a position for all heads: out[t] = sum of what the row sees by the
  /// softmax of q.k * scale and the head's sink. Softmax in FP32.
  virtual void latent_attention(const LatentInputs& inputs, const Batch& batch, const Tensor& out);

  /// x += delta.
  virtual void add(const Tensor& x, const Tensor& delta);

  /// Scores s = sqrt(log(1 + e^logit)); the top k of s + bias as ids, in falling order, ties to the lower id; weights
  /// s over the sum of the chosen, times scale. logits F32 [rows, experts]; ids i32 and weights F32 [rows, k].
  virtual void score_experts(const Tensor& logits, const ExpertScoring& scoring, const Tensor& ids,
                             const Tensor& weights);

  /// A residual of n streams h [rows, n * d]: what a block reads of each stream, what it adds to each, and how the
  /// streams mix (n x n, doubly stochastic by Sinkhorn's steps), F32 [rows, z.cols]. docs/deepseek_v4.md has the
  /// formulas.
  virtual void stream_weights(const Tensor& h, const StreamMaps& maps, const Tensor& weights);

  /// x = the sum of h's streams by the first n weights of a row.
  virtual void collapse_streams(const Tensor& h, const Tensor& weights, const Tensor& x);

  /// In place: h's streams mixed by the row's n x n weights, plus y by the second n.
  virtual void expand_streams(const Tensor& h, const Tensor& weights, const Tensor& y);

  /// out = silu of the convolution of x over the sequence's tokens, a channel by itself, zeros before the first; x
  /// becomes part of the history. docs/qwen4_exp.md has the formulas of this and of what follows.
  virtual void causal_conv(const ConvInputs& inputs, const Batch& batch, const Tensor& out);

  /// The gated delta rule: each value head updates its state by its token's key and value, and out [rows, value_heads *
  /// value_dim] is what the query recalls of it. The state of a sequence at position 0 is zero whatever memory holds.
  virtual void delta_rule(const DeltaInputs& inputs, const Batch& batch, const Tensor& out);

  /// In place: every run of weight.cols values of a row is normalised by itself and multiplied by weight and gate.
  virtual void gated_rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& gate, GateKind kind);

  /// x *= sigmoid(gate).
  virtual void multiply_by_gate(const Tensor& x, const Tensor& gate);

  /// x += sigmoid(gate) * delta, gate [rows, 1].
  virtual void add_gated(const Tensor& x, const Tensor& delta, const Tensor& gate);

  /// out = h [rows, n * d], each of the n streams normalised by itself; weight [1, n * d]. out may be h.
  virtual void normalise_streams(const Tensor& h, const Tensor& weight, std::int64_t streams, float eps,
                                 const Tensor& out);

  /// x = silu(factor * x).
  virtual void scaled_silu(const Tensor& x, float factor);

  /// x = the mean over streams of sigmoid(gates) * normed, both [rows, n * d].
  virtual void mix_streams(const Tensor& normed, const Tensor& gates, const Tensor& x);

  /// Stream s of h += 2 sigmoid(gates[s] / n) * y; gates [rows, n].
  virtual void inject_streams(const Tensor& h, const Tensor& gates, const Tensor& y);

  /// Stream s of out = sigmoid(root(<key, query> of that stream / sqrt(d))) * value, root being the square root that
  /// keeps the sign, of 1e-6 at least.
  virtual void gate_values(const Tensor& keys, const Tensor& queries, const Tensor& value, const Tensor& out);

  /// Makes the entries whose last token is in the batch, entry w in row w of its sequence: the mean of the tokens'
  /// rows, normalised, rotated by the first one's position.
  virtual void mean_pool(const MeanPoolInputs& inputs, const Batch& batch);

  /// attention() over the blocks whose numbers are in chosen (i32 [rows, k], complete ones in rising order, then -1)
  /// and the positions after the last complete one.
  virtual void block_attention(const KvCache& cache, std::int64_t layer, const Tensor& q, const Batch& batch,
                               const Tensor& chosen, const BlockAttentionShape& shape, const Tensor& out);

  /// The table stays where the checkpoint has it and is read a row at a time; the checkpoint must outlive it.
  virtual std::unique_ptr<NgramEmbedding> load_ngrams(const NgramSource& source);

  /// out[t] = what the n-grams that end in token t stand for. `history` (i32 [slots * (n - 1), 1]) keeps the sequences'
  /// last tokens.
  virtual void embed_ngrams(const NgramEmbedding& table, const Tensor& history, const Batch& batch, const Tensor& out);

  // --- sequences of operators ---------------------------------------------------------------------------------------

  /// What lies between a layer's projections and its attention: q and k normalised (where they have weights) and
  /// rotated, q in place, k and v appended to the cache. k and v are unspecified afterwards.
  virtual void prepare_heads(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch);

  /// prepare_heads(), then attention() of heads.q, which is unspecified afterwards too.
  virtual void attend(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch,
                      const AttentionShape& shape, const Tensor& out);

  /// stream.normed = rms_norm(stream), with what is pending.
  void normalise(ResidualStream& stream, const RowNorm& norm);

  /// linear() of two weights with one input: what is small rides along in the launch of what is large. Each output has
  /// the bits that linear() alone gives.
  virtual void linear_pair(const Linear& large, const Linear& small, const Tensor& x, const Tensor& y,
                           const Tensor& y_small);

  /// gates = low W^T, then x = mix_streams(normed, gates); gates are unspecified afterwards.
  virtual void linear_mixed(const Linear& weight, const Tensor& low, const Tensor& normed, const Tensor& gates,
                            const Tensor& x);

  /// y = rms_norm(stream) W^T; stream.normed is unspecified afterwards.
  virtual void linear_normalised(ResidualStream& stream, const RowNorm& norm, const Linear& weight, const Tensor& y);

  /// out = swiglu(rms_norm(stream) W^T) for a weight loaded as gated; gate_up [rows, 2 I] is scratch.
  virtual void linear_gated(ResidualStream& stream, const RowNorm& norm, const Linear& weight, const Tensor& gate_up,
                            const Tensor& out);

  /// stream += x W^T, the product rounded to activation_type() first. Nothing is pending before.
  virtual void linear_added(const Linear& weight, const Tensor& x, ResidualStream& stream);

  /// Runs `step`, which calls operators on this batch, and neither reads nor writes. A backend may record the calls and
  /// repeat them without calling `step` when a batch of the same shape comes again, so they must depend on nothing but
  /// that shape, the contents of device memory, and `variant`, by which a caller tells apart steps that differ in
  /// anything else (its tensors' places, what it computes).
  virtual void run_step(const Batch& batch, int variant, const std::function<void()>& step);

  /// Forgets what run_step() has recorded: before tensors that a step used are freed, if another of the same shape and
  /// variant is to follow.
  virtual void forget_steps();
};

/// Error::missing_capability naming the operators of these that the backend lacks, in words that begin with `who`.
void require_operators(const Backend& backend, std::span<const Operator> operators, std::string_view who);

}  // namespace qpn8
