#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/model_config.hpp"

namespace qpn8 {

/// What the attention of a deepseek_v4 layer sees beside its sliding window.
enum class CompressedAttention : std::uint8_t {
  none,    ///< nothing
  sparse,  ///< entries of overlapping windows, those that an indexer chooses
  heavy,   ///< entries of windows side by side, all of them
};

/// The keys of a deepseek_v4 config that ModelConfig does not have.
struct DeepseekV4Config {
  struct Layer {
    CompressedAttention attention = CompressedAttention::none;
    std::int64_t ratio = 0;     ///< tokens an entry; 0 without entries
    bool hash_routing = false;  ///< a table gives each token id its experts
  };

  std::int64_t rope_dims = 0;  ///< the last dimensions of a head are rotated
  std::int64_t q_rank = 0;
  std::int64_t o_rank = 0;
  std::int64_t o_groups = 1;
  std::int64_t window = 0;
  std::int64_t index_heads = 0;  ///< the indexer's sizes are 0 if no layer is sparse
  std::int64_t index_dim = 0;
  std::int64_t index_topk = 0;
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_size = 0;  ///< inner channels of one
  std::int64_t shared_size = 0;  ///< inner channels of all shared experts together
  double swiglu_limit = 0.0;     ///< 0: no clamp
  double routed_scale = 1.0;
  std::int64_t streams = 1;
  std::int64_t sinkhorn_steps = 1;
  double stream_eps = 1e-6;
  bool fp4_experts = false;  ///< announced; a checkpoint's tensors decide
  RopeConfig main_rope;      ///< of layers without entries; partial_rotary_factor has no part in it
  RopeConfig entry_rope;     ///< of layers with entries
  std::vector<Layer> layers;
};

/// Accepts the published keys (compress_ratios, num_hash_layers, qk_rope_head_dim, rope_scaling) and those of the
/// library that reads them (layer_types with compress_rates, mlp_layer_types, partial_rotary_factor, nested
/// rope_parameters). Error::bad_file names the key, Error::unsupported a variant that the decoder does not have.
DeepseekV4Config read_deepseek_v4(const ModelConfig& config);

}  // namespace qpn8
