#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/model_config.hpp"

// What a config must hold for a topology, and for the blocks that all decoders share.

namespace qpn8 {

/// A dimension that the ranks of a tensor-parallel group share.
struct SplitDimension {
  const char* what;
  std::int64_t size;
  bool replicates = false;  ///< ranks may outnumber it and hold copies, if each is then held equally often
};

/// Error::bad_argument listing the legal values of a --tp that does not divide every dimension, none of which is above
/// the first one's size. Tile and scale-block
/// sizes are no limits: a shard that they do not fit falls back, and the plan says so.
void require_split(std::span<const SplitDimension> dimensions, int tp);

/// Error::bad_argument saying how many stages the layers fill.
void require_stages(const ModelConfig& config, int pp);

/// Error::bad_file where a layer has a dense MLP and intermediate_size is missing; a model of experts alone may leave
/// it out.
void require_mlp_width(const ModelConfig& config);

/// Error::unsupported for another activation than the one that the MLPs have.
void require_gated_silu(const ModelConfig& config);

}  // namespace qpn8
