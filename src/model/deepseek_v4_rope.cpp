#include "model/deepseek_v4_rope.hpp"

namespace qpn8 {
namespace {

RopeFrequencies frequencies(ModelConfig config, const RopeConfig& rope, std::int64_t dims) {
  config.rope = rope;
  config.rope.partial_rotary_factor = 1.0;
  config.head_dim = dims;
  return rope_frequencies(config);
}

}  // namespace

DeepseekV4Rope deepseek_v4_rope(const ModelConfig& config, const DeepseekV4Config& details) {
  return {.main = frequencies(config, details.main_rope, details.rope_dims),
          .entry = frequencies(config, details.entry_rope, details.rope_dims)};
}

}  // namespace qpn8
