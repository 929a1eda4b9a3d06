#include "model/architectures.hpp"
#include "model/decoder.hpp"

namespace qpn8 {
namespace {

// Qwen3: q and k are normalised a head, and the head dimension is not hidden_size / heads.
DecoderSpec qwen3_spec(const ModelConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = config.boolean_or("attention_bias", false);
  spec.o_bias = spec.qkv_bias;
  spec.qk_norm = true;
  spec.layers = windowed_layers(config);
  return spec;
}

}  // namespace

const Architecture kQwen3 = decoder_architecture<qwen3_spec>("qwen3");

}  // namespace qpn8
