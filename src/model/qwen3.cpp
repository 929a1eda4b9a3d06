#include "model/architectures.hpp"
#include "model/decoder.hpp"

namespace qpn8 {
namespace {

// Qwen3: q and k are normalised a head, and the head dimension is not hidden_size / heads.
DecoderSpec spec_of(const ModelConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = config.boolean_or("attention_bias", false);
  spec.o_bias = spec.qkv_bias;
  spec.qk_norm = true;
  spec.layers = windowed_layers(config);
  return spec;
}

std::vector<Projection> projections(const ModelConfig& config, const Topology& topology) {
  return decoder_projections(config, spec_of(config), topology);
}

std::unique_ptr<Model> load(const ModelSource& source) { return load_decoder(source, spec_of(*source.config)); }

}  // namespace

const Architecture kQwen3 = {.model_type = "qwen3", .projections = projections, .load = load};

}  // namespace qpn8
