#include "model/architectures.hpp"
#include "model/decoder.hpp"

namespace qpn8 {
namespace {

// Llama 2, 3 and the models published in its form: full attention, biases only where the config asks for them.
DecoderSpec llama_spec(const ModelConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = config.boolean_or("attention_bias", false);
  spec.o_bias = spec.qkv_bias;
  spec.mlp_bias = config.boolean_or("mlp_bias", false);
  spec.layers.resize(static_cast<std::size_t>(config.layers));
  return spec;
}

}  // namespace

const Architecture kLlama = decoder_architecture<llama_spec>("llama");

}  // namespace qpn8
