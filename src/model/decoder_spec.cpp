#include <fmt/format.h>

#include "base/printable.hpp"
#include "model/decoder.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

bool is_sliding(const ModelConfig& config, std::size_t layer) {
  const nlohmann::json& type = config.json.at("layer_types").at(layer);
  if (type == "sliding_attention") return true;
  if (type == "full_attention") return false;
  throw Error(Error::unsupported,
              fmt::format("{}: layer_types[{}] is {}; known: full_attention, sliding_attention", config.file.string(),
                          layer, printable(type.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 80)));
}

}  // namespace

std::vector<DecoderSpec::Layer> windowed_layers(const ModelConfig& config) {
  std::vector<DecoderSpec::Layer> layers(static_cast<std::size_t>(config.layers));
  const auto types = config.json.find("layer_types");
  const bool has_types = types != config.json.end() && types->is_array();
  if (has_types && types->size() != layers.size()) {
    throw Error(Error::bad_file, fmt::format("{}: layer_types has {} entries, expected one for each of the {} layers",
                                             config.file.string(), types->size(), layers.size()));
  }
  const bool windowed = config.boolean_or("use_sliding_window", false);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool sliding = has_types ? is_sliding(config, i)
                                   : static_cast<std::int64_t>(i) >= config.integer_or("max_window_layers", 28, 0);
    if (windowed && sliding) layers[i].window = config.integer_or("sliding_window", 4096, 1);
  }
  return layers;
}

}  // namespace qpn8
