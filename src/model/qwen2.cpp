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

std::vector<Projection> projections(const ModelConfig& config, const Topology& topology) {
  return decoder_projections(config, spec_of(config), topology);
}

std::unique_ptr<Model> load(const ModelSource& source) { return load_decoder(source, spec_of(*source.config)); }

}  // namespace

const Architecture kQwen2 = {.model_type = "qwen2", .projections = projections, .load = load};

}  // namespace qpn8
