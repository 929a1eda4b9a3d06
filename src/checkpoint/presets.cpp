#include "checkpoint/presets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/embedded_file.hpp"
#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

/// Defined in a generated file: presets/*.json.
std::span<const EmbeddedFile> embedded_presets();

namespace {

std::string name_of(const EmbeddedFile& file) { return std::filesystem::path(file.name).replace_extension().string(); }

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  names.reserve(embedded_presets().size());
  for (const EmbeddedFile& file : embedded_presets()) names.push_back(name_of(file));
  std::sort(names.begin(), names.end());
  return names;
}

ModelConfig preset_config(std::string_view name) {
  for (const EmbeddedFile& file : embedded_presets()) {
    if (name_of(file) == name) {
      return parse_model_config(std::string(file.text), std::filesystem::path("presets") / file.name);
    }
  }
  throw Error(Error::bad_argument, fmt::format("--like {}: is not a known model, expected one of {}", printable(name),
                                               fmt::join(preset_names(), ", ")));
}

}  // namespace qpn8
