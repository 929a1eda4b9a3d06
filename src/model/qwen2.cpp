#include "model/architectures.hpp"
#include "model/decoder.hpp"

namespace qpn8 {
namespace {

// Qwen2 and Qwen2.5: q, k and v always have biases, nothing else has.
DecoderSpec qwen2_spec(const ModelConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = true;
  spec.layers = windowed_layers(config);
  return spec;
}

}  // namespace

const Architecture kQwen2 = decoder_architecture<qwen2_spec>("qwen2");

}  // namespace qpn8
