#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoint/model_config.hpp"

namespace qpn8 {

/// The keys of decoders whose layers are linear attention (a gated delta rule) or full attention, which ModelConfig
/// does not have: qwen4_exp and its relatives qwen3_next, qwen3_5 and qwen3_5_moe.
struct HybridConfig {
  struct Layer {
    bool linear = true;                  ///< linear attention; else full
    bool experts = true;                 ///< else one dense MLP
    std::optional<std::int64_t> ngrams;  ///< which of the layers with n-gram tables it is, from 0
  };

  /// Chooses the blocks of the context that a token attends to.
  struct Indexer {
    std::int64_t heads = 0;
    std::int64_t width = 0;
    std::int64_t budget = 0;  ///< tokens, a multiple of ratio
    std::int64_t ratio = 1;   ///< tokens a block
  };

  /// Hashed n-grams that are embedded and added to the residual.
  struct Ngrams {
    std::int64_t width = 0;     ///< of an embedding, all heads together
    std::int64_t taps = 0;      ///< of the convolution behind it
    std::int64_t orders = 0;    ///< the longest n-gram
    std::int64_t boundary = 0;  ///< the token that ends a text
  };

  std::vector<Layer> layers;
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;  ///< a multiple of key_heads
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t conv_taps = 0;
  bool grouped = false;   ///< linear attention's projections lie head by head, not q | k | v | z
  bool silu_gate = true;  ///< of linear attention's output; else sigmoid
  std::optional<Indexer> indexer;
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_size = 0;
  std::int64_t shared_size = 0;
  bool normalise_experts = true;
  std::int64_t streams = 0;  ///< of the residual, with gated connections; 0: one, with a norm before each block
  std::int64_t low_rank = 0;
  std::optional<Ngrams> ngrams;

  /// Channels that linear attention convolves: q, k and v.
  std::int64_t conv_channels() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
};

/// For one of the four model types. Error::bad_file names the key, Error::unsupported a variant that the decoder does
/// not have.
HybridConfig read_hybrid(const ModelConfig& config);

}  // namespace qpn8
