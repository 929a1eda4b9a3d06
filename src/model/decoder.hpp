#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "model/architecture.hpp"

namespace qpn8 {

/// What distinguishes one pre-norm decoder with rotary attention from another; an architecture's file fills it in from
/// its config. Sizes that all share are in ModelConfig.
struct DecoderSpec {
  struct Layer {
    std::int64_t window = 0;  ///< sliding window, 0 for full attention
    bool moe = false;         ///< experts instead of a dense MLP
  };
  struct Moe {
    std::int64_t experts = 0;
    std::int64_t experts_per_token = 0;
    std::int64_t intermediate_size = 0;
    bool normalise = false;  ///< the chosen experts' weights sum to 1
  };

  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  std::vector<Layer> layers;
  Moe moe;
};

/// Layers with the sliding windows of the Qwen family's keys: use_sliding_window, sliding_window, max_window_layers,
/// and layer_types where it is given.
std::vector<DecoderSpec::Layer> windowed_layers(const ModelConfig& config);

/// The projections of such a decoder on one rank, for a config that load_decoder can run: Error::unsupported or
/// bad_file names an activation or a rotary embedding that it cannot. Error::bad_argument lists the legal values of a
/// --tp that does not divide every dimension that is split, or says how many stages the layers fill.
std::vector<Projection> decoder_projections(const ModelConfig& config, const DecoderSpec& spec,
                                            const Topology& topology);

std::unique_ptr<Model> load_decoder(const ModelSource& source, const DecoderSpec& spec);

/// An architecture that its DecoderSpec describes completely, read from a config by `spec_of`.
template <DecoderSpec (*spec_of)(const ModelConfig&)>
constexpr Architecture decoder_architecture(std::string_view model_type) {
  return {
      .model_type = model_type,
      .projections = [](const ModelConfig& config,
                        const Topology& topology) { return decoder_projections(config, spec_of(config), topology); },
      .load = [](const ModelSource& source) { return load_decoder(source, spec_of(*source.config)); }};
}

}  // namespace qpn8
