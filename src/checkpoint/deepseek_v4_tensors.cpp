#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "checkpoint/deepseek_v4_config.hpp"
#include "checkpoint/tensor_lists.hpp"
#include "qpn8/pack.hpp"

namespace qpn8 {
namespace {

/// The layout that DeepSeek publishes: FP8 with block scales for attention and experts, FP32 for what steers the
/// streams, integers for the layers that choose experts by token.
class DeepseekV4TensorList {
 public:
  explicit DeepseekV4TensorList(const ModelConfig& config)
      : config_(config), details_(read_deepseek_v4(config)), hidden_(config.hidden_size) {}

  std::vector<ListedTensor> all() {
    const std::int64_t maps = (2 + details_.streams) * details_.streams;
    tensors_.matrix("embed.weight", {config_.vocab_size, hidden_});
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string prefix = fmt::format("layers.{}.", layer);
      const DeepseekV4Config::Layer& kind = details_.layers[static_cast<std::size_t>(layer)];
      streams(prefix + "hc_attn_", maps, 3);
      tensors_.norm(prefix + "attn_norm.weight", hidden_);
      attention(prefix + "attn.", kind);
      streams(prefix + "hc_ffn_", maps, 3);
      tensors_.norm(prefix + "ffn_norm.weight", hidden_);
      experts(prefix + "ffn.", kind.hash_routing);
    }
    streams("hc_head_", details_.streams, 1);
    tensors_.norm("norm.weight", hidden_);
    tensors_.matrix("head.weight", {config_.vocab_size, hidden_});
    return tensors_.take();
  }

 private:
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
    single(prefix + "fn", {outputs, details_.streams * hidden_}, TensorRole::matrix);
    single(prefix + "base", {outputs}, TensorRole::bias);
    single(prefix + "scale", {scales}, TensorRole::norm);
  }

  void attention(const std::string& prefix, const DeepseekV4Config::Layer& kind) {
    const std::int64_t all_heads = config_.heads * config_.head_dim;
    const std::int64_t o_rank = details_.o_groups * details_.o_rank;
    fp8(prefix + "wq_a", details_.q_rank, hidden_);
    tensors_.norm(prefix + "q_norm.weight", details_.q_rank);
    fp8(prefix + "wq_b", all_heads, details_.q_rank);
    fp8(prefix + "wkv", config_.head_dim, hidden_);
    tensors_.norm(prefix + "kv_norm.weight", config_.head_dim);
    single(prefix + "attn_sink", {config_.heads}, TensorRole::bias);
    fp8(prefix + "wo_a", o_rank, all_heads / details_.o_groups);
    fp8(prefix + "wo_b", hidden_, o_rank);
    if (kind.attention == CompressedAttention::none) return;
    compressor(prefix + "compressor.", kind, config_.head_dim);
    if (kind.attention == CompressedAttention::sparse) indexer(prefix + "indexer.", kind);
  }

  /// A sparse layer's compressor has two series, each of the width of its keys.
  void compressor(const std::string& prefix, const DeepseekV4Config::Layer& kind, std::int64_t width) {
    const std::int64_t channels = kind.attention == CompressedAttention::sparse ? 2 * width : width;
    tensors_.matrix(prefix + "wkv.weight", {channels, hidden_});
    tensors_.matrix(prefix + "wgate.weight", {channels, hidden_});
    single(prefix + "ape", {kind.ratio, channels}, TensorRole::bias);
    tensors_.norm(prefix + "norm.weight", width);
  }

  void indexer(const std::string& prefix, const DeepseekV4Config::Layer& kind) {
    fp8(prefix + "wq_b", details_.index_heads * details_.index_dim, details_.q_rank);
    tensors_.matrix(prefix + "weights_proj.weight", {details_.index_heads, hidden_});
    compressor(prefix + "compressor.", kind, details_.index_dim);
  }

  void mlp(const std::string& prefix, std::int64_t intermediate) {
    fp8(prefix + "w1", intermediate, hidden_);
    fp8(prefix + "w2", hidden_, intermediate);
    fp8(prefix + "w3", intermediate, hidden_);
  }

  void experts(const std::string& prefix, bool by_token) {
    const std::int64_t count = details_.experts;
    tensors_.matrix(prefix + "gate.weight", {count, hidden_});
    if (by_token) {
      experts_of_tokens(prefix + "gate.tid2eid", count);
    } else {
      single(prefix + "gate.bias", {count}, TensorRole::bias);
    }
    for (std::int64_t expert = 0; expert < count; ++expert) {
      mlp(fmt::format("{}experts.{}.", prefix, expert), details_.expert_size);
    }
    mlp(prefix + "shared_experts.", details_.shared_size);
  }

  /// A row of different experts for every token: consecutive ones from a random one.
  void experts_of_tokens(const std::string& name, std::int64_t count) {
    const std::int64_t chosen = details_.experts_per_token;
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
  DeepseekV4Config details_;
  std::int64_t hidden_;
  TensorCollector tensors_;
};

}  // namespace

std::vector<ListedTensor> list_deepseek_v4_tensors(const ModelConfig& config) {
  return DeepseekV4TensorList(config).all();
}

}  // namespace qpn8
