#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/model_config.hpp"

namespace qpn8 {

/// Names of the published models whose config.json is compiled in (presets/NAME.json), sorted.
std::vector<std::string> preset_names();

/// The config of a published model. Error::bad_argument names an unknown one and lists the known.
ModelConfig preset_config(std::string_view name);

}  // namespace qpn8
