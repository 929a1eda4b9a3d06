#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/dtype.hpp"
#include "checkpoint/model_config.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8 {

/// What of a published model is made smaller; absent: nothing.
struct Reduction {
  std::optional<std::int64_t> layers = std::nullopt;
  std::optional<std::int64_t> experts = std::nullopt;
  std::optional<std::int64_t> ngram_rows = std::nullopt;  ///< least rows of each of a model's n-gram tables
};

/// A config so reduced; what the file lists a layer is cut to match. Error::bad_argument "--layers 99: ..." names the
/// legal values.
ModelConfig reduced_config(const ModelConfig& config, const Reduction& reduction);

struct SyntheticOptions {
  std::uint64_t seed = 0;
  DType dtype = DType::bf16;  ///< or f16; of all tensors but those that the published checkpoints hold in another type
  /// A shard is closed before it would exceed this; a larger tensor has one of its own.
  std::size_t shard_bytes = std::size_t{4} << 30;
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};  ///< bytes of weights; may be empty
};

/// Writes a checkpoint of random weights: safetensors shards with their index (one model.safetensors where one shard
/// suffices), config.json, generation_config.json and a tokenizer that encodes any text.
///
/// Matrices have deviation 1 / sqrt(inputs), norms are near 1, biases near 0, so that activations keep their size and
/// logits stay finite however deep the model. The bytes depend on the config, the seed and the dtype alone, not on the
/// number of threads or shards. Memory: a few MiB whatever the model. config.json is written last: without it, what an
/// interrupted run left is not taken for a checkpoint.
///
/// Error::bad_argument if the folder exists and is not empty, or if its file system has too little space.
void write_synthetic_checkpoint(const ModelConfig& config, const std::filesystem::path& folder,
                                const SyntheticOptions& options, ThreadTeam& team);

}  // namespace qpn8
