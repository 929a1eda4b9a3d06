#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/engine_options.hpp"

namespace qpn8 {

/// What loading a model takes.
struct LoadResult {
  double seconds = 0;          ///< from the folder's name to a model that can run
  double weights_seconds = 0;  ///< of it, reading, packing and copying the weights
  std::int64_t peak_rss_bytes = 0;
  std::int64_t weight_bytes = 0;      ///< packed and kept, on the device
  std::int64_t checkpoint_bytes = 0;  ///< of all tensors in the files
  int threads = 0;
};

/// Loads the model in a child process and measures that, so that what was in memory before does not hide its peak.
/// Errors of the loading are thrown here. The process must have one thread: a child has no others, and would wait for
/// them for ever.
LoadResult measure_load(const std::filesystem::path& folder, const EngineOptions& options);

/// The same in this process, for a GPU, which a child of a process that has used it cannot use: its peak is that of the
/// process so far.
LoadResult measure_load_here(const std::filesystem::path& folder, const EngineOptions& options);

}  // namespace qpn8
