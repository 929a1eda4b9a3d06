#pragma once

#include "checkpoint/deepseek_v4_config.hpp"
#include "model/rope.hpp"

namespace qpn8 {

/// The two rotations of a deepseek_v4 model.
struct DeepseekV4Rope {
  RopeFrequencies main;   ///< of layers that see their window alone
  RopeFrequencies entry;  ///< of layers with entries, for all that they rotate
};

/// Errors as in rope_frequencies.
DeepseekV4Rope deepseek_v4_rope(const ModelConfig& config, const DeepseekV4Config& details);

}  // namespace qpn8
