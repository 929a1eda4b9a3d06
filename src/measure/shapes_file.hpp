#pragma once

#include <filesystem>
#include <vector>

#include "route/plan.hpp"

namespace qpn8 {

/// Reads the projections of a file: a list of {"role", "k", "n"} with an optional "type" ("f16" if absent; or "bf16",
/// "f32", "f8_e4m3" with 128x128 block scales). Error::bad_file names the file and the entry.
std::vector<ProjectionDesc> load_shapes(const std::filesystem::path& file);

}  // namespace qpn8
