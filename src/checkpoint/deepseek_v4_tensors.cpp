#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "checkpoint/tensor_lists.hpp"
#include "qpn8/error.hpp"
#include "qpn8/pack.hpp"

namespace qpn8 {
namespace {

// Ratios of compress_ratios: what kind of attention a layer has.
constexpr std::int64_t kSparseRatio = 4;  // with an indexer that chooses

/// The layout that DeepSeek publishes: FP8 with block scales for attention and experts, FP32 for what steers the
/// streams, integers for the layers that choose experts by token.
class List {
 public:
  explicit List(const ModelConfig& config)
      : config_(config),
        hidden_(config.hidden_size),
        streams_(config.integer("hc_mult", 1)),
        q_rank_(config.integer("q_lora_rank", 1)),
        ratios_(ratios_of(config)) {}

  std::vector<ListedTensor> all() {
    tensors_.matrix("embed.weight", {config_.vocab_size, hidden_});
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string prefix = fmt::format("layers.{}.", layer);
      streams(prefix + "hc_attn_", (2 + streams_) * streams_, 3);
      tensors_.norm(prefix + "attn_norm.weight", hidden_);
      attention(prefix + "attn.", ratios_[static_cast<std::size_t>(layer)]);
      streams(prefix + "hc_ffn_", (2 + streams_) * streams_, 3);
      tensors_.norm(prefix + "ffn_norm.weight", hidden_);
      experts(prefix + "ffn.", layer < config_.integer_or("num_hash_layers", 0, 0));
    }
    streams("hc_head_", streams_, 1);
    tensors_.norm("norm.weight", hidden_);
    tensors_.matrix("head.weight", {config_.vocab_size, hidden_});
    return tensors_.take();
  }

 private:
  static std::vector<std::int64_t> ratios_of(const ModelConfig& config) {
    const auto list = config.json.find("compress_ratios");
    const bool enough = list != config.json.end() && list->is_array() &&
                        static_cast<std::int64_t>(list->size()) >= config.layers &&
                        std::all_of(list->begin(), list->end(), [](const auto& r) { return r.is_number_unsigned(); });
    if (enough) return list->get<std::vector<std::int64_t>>();
    throw Error(Error::bad_file, config.file.string() + ": compress_ratios: expected an integer for each layer");
  }

  void single(std::string name, std::vector<std::int64_t> shape, TensorRole role) {
    tensors_.add({.name = std::move(name), .shape = std::move(shape), .role = role, .dtype = DType::f32});
  }

  void fp8(const std::string& name, std::int64_t rows, std::int64_t cols) {
    const auto blocks = [](std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; };
    tensors_.add(
        {.name = name + ".weight", .shape = {rows, cols}, .role = TensorRole::block_codes, .dtype = DType::f8_e4m3});
    tensors_.add({.name = name + ".scale",
                  .shape = {blocks(rows), blocks(cols)},
                  .role = TensorRole::block_scales,
                  .dtype = DType::f8_e8m0,
                  .inputs = cols});
  }

  /// The maps between the streams of the residual and a block.
  void streams(const std::string& prefix, std::int64_t outputs, std::int64_t scales) {
    single(prefix + "fn", {outputs, streams_ * hidden_}, TensorRole::matrix);
    single(prefix + "base", {outputs}, TensorRole::bias);
    single(prefix + "scale", {scales}, TensorRole::norm);
  }

  void attention(const std::string& prefix, std::int64_t ratio) {
    const std::int64_t all_heads = config_.heads * config_.head_dim;
    const std::int64_t groups = config_.integer("o_groups", 1);
    const std::int64_t o_rank = groups * config_.integer("o_lora_rank", 1);
    fp8(prefix + "wq_a", q_rank_, hidden_);
    tensors_.norm(prefix + "q_norm.weight", q_rank_);
    fp8(prefix + "wq_b", all_heads, q_rank_);
    fp8(prefix + "wkv", config_.head_dim, hidden_);
    tensors_.norm(prefix + "kv_norm.weight", config_.head_dim);
    single(prefix + "attn_sink", {config_.heads}, TensorRole::bias);
    fp8(prefix + "wo_a", o_rank, all_heads / groups);
    fp8(prefix + "wo_b", hidden_, o_rank);
    if (ratio == 0) return;
    compressor(prefix + "compressor.", ratio, config_.head_dim);
    if (ratio == kSparseRatio) indexer(prefix + "indexer.");
  }

  /// A sparse layer's compressor has two series, each of the width of its keys.
  void compressor(const std::string& prefix, std::int64_t ratio, std::int64_t width) {
    const std::int64_t channels = ratio == kSparseRatio ? 2 * width : width;
    tensors_.matrix(prefix + "wkv.weight", {channels, hidden_});
    tensors_.matrix(prefix + "wgate.weight", {channels, hidden_});
    single(prefix + "ape", {ratio, channels}, TensorRole::bias);
    tensors_.norm(prefix + "norm.weight", width);
  }

  void indexer(const std::string& prefix) {
    const std::int64_t heads = config_.integer("index_n_heads", 1);
    const std::int64_t width = config_.integer("index_head_dim", 1);
    fp8(prefix + "wq_b", heads * width, q_rank_);
    tensors_.matrix(prefix + "weights_proj.weight", {heads, hidden_});
    compressor(prefix + "compressor.", kSparseRatio, width);
  }

  void mlp(const std::string& prefix, std::int64_t intermediate) {
    fp8(prefix + "w1", intermediate, hidden_);
    fp8(prefix + "w2", hidden_, intermediate);
    fp8(prefix + "w3", intermediate, hidden_);
  }

  void experts(const std::string& prefix, bool by_token) {
    const std::int64_t count = config_.integer("n_routed_experts", 1);
    const std::int64_t intermediate = config_.integer("moe_intermediate_size", 1);
    tensors_.matrix(prefix + "gate.weight", {count, hidden_});
    if (by_token) {
      experts_of_tokens(prefix + "gate.tid2eid", count);
    } else {
      single(prefix + "gate.bias", {count}, TensorRole::bias);
    }
    for (std::int64_t expert = 0; expert < count; ++expert) {
      mlp(fmt::format("{}experts.{}.", prefix, expert), intermediate);
    }
    mlp(prefix + "shared_experts.", config_.integer("n_shared_experts", 1) * intermediate);
  }

  /// A row of different experts for every token: consecutive ones from a random one.
  void experts_of_tokens(const std::string& name, std::int64_t count) {
    const std::int64_t chosen = config_.integer("num_experts_per_tok", 1);
    tensors_.add({.name = name,
                  .shape = {config_.vocab_size, chosen},
                  .role = TensorRole::integers,
                  .dtype = DType::i64,
                  .integer = [chosen, count](std::int64_t index) {
                    Random random(static_cast<std::uint64_t>(index / chosen));
                    const auto first = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
                    return (first + index % chosen) % count;
                  }});
  }

  const ModelConfig& config_;
  std::int64_t hidden_;
  std::int64_t streams_;
  std::int64_t q_rank_;
  std::vector<std::int64_t> ratios_;
  TensorCollector tensors_;
};

}  // namespace

std::vector<ListedTensor> list_deepseek_v4_tensors(const ModelConfig& config) { return List(config).all(); }

}  // namespace qpn8
