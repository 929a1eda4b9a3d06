#include "model/architectures.hpp"
#include "model/decoder.hpp"

namespace qpn8 {
namespace {

// Qwen2 and Qwen2.5: q, k and v always have biases, nothing else has.
DecoderSpec spec_of(const ModelConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = true;
  spec.layers = windowed_layers(config);
  return spec;
}

}  // namespace

const Architecture kQwen2 = decoder_architecture<spec_of>("qwen2");

}  // namespace qpn8
