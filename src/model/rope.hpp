#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/model_config.hpp"

namespace qpn8 {

/// The rotary embedding of a config: one frequency a rotated pair, and the factor on cos and sin.
struct RopeFrequencies {
  std::vector<float> frequencies;  ///< radians a position, rotary dimensions / 2 of them
  float scale = 1.0F;
};

/// Types default, linear, llama3 and yarn. Error::unsupported names another type; Error::bad_file a missing or
/// impossible parameter, or parameters that together rotate by what FP32 does not hold. Formulas: default and yarn as
/// in "RoFormer" and "YaRN" (2309.00071); llama3 is the wavelength-dependent interpolation that the Llama 3.1
/// checkpoints are published with.
RopeFrequencies rope_frequencies(const ModelConfig& config);

}  // namespace qpn8
