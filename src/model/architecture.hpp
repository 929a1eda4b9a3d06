#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/model_config.hpp"
#include "model/model.hpp"
#include "qpn8/contract.hpp"
#include "route/plan.hpp"

namespace qpn8 {

/// What the tensor-parallel ranks of a stage share of a part.
enum class Split : std::uint8_t {
  none,  ///< nothing: each holds all of it
  rows,  ///< its outputs
  cols,  ///< its inputs: every rank's product is a summand
};

/// Rows that one checkpoint tensor contributes to a projection.
struct ProjectionPart {
  std::string tensor;     ///< "model.layers.0.self_attn.q_proj.weight"
  std::string bias;       ///< name of its bias, or empty
  std::int64_t rows = 0;  ///< of all ranks together
  std::int64_t cols = 0;
  Split split = Split::none;
  std::int64_t copies = 1;  ///< neighbouring ranks that hold the same slice
  /// Where the rows lie in the tensor, if they are not all of it: from first_row on, in runs of run_rows whose
  /// beginnings are run_pitch apart (0: in one run).
  std::int64_t first_row = 0;
  std::int64_t run_rows = 0;
  std::int64_t run_pitch = 0;
  std::vector<std::int64_t> shape = {};  ///< of the tensor; empty: [rows, cols]
};

/// What a projection is stored as, where only the config is there to say so.
enum class Announced : std::uint8_t {
  as_config,    ///< what the config says of the weights
  unquantised,  ///< the config's dtype, whatever its quantisation
  fp4,          ///< E2M1 with a scale a row and 32 inputs
};

/// A projection as admission sees it (desc) and as the checkpoint stores it (parts, stacked by rows).
struct Projection {
  ProjectionDesc desc;
  std::vector<ProjectionPart> parts;
  std::int64_t zero_rows = 0;  ///< behind the parts, up to a width that contracts know
  Announced announced = Announced::as_config;
};

/// What a model is loaded from.
struct ModelSource {
  const ModelConfig* config = nullptr;
  const Checkpoint* checkpoint = nullptr;
  const Plan* plan = nullptr;
  std::span<const Projection> projections;
  Backend* backend = nullptr;
  int tp = 1;                                                         ///< ranks that share each layer
  int tp_rank = 0;                                                    ///< which of them this is
  std::int64_t max_rows = 0;                                          ///< most tokens a pass, and most rows of logits
  std::function<void(const PlannedProjection&)> on_loaded = nullptr;  ///< told of each projection on the backend
};

/// One supported architecture: what it is made of, and how it is put on a backend. Those that are a decoder with a
/// DecoderSpec come from decoder_architecture(); another kind brings its own two functions.
struct Architecture {
  std::string_view model_type;
  std::vector<Projection> (*projections)(const ModelConfig& config, const Topology& topology);
  std::unique_ptr<Model> (*load)(const ModelSource& source);
  /// The name under which this checkpoint holds a tensor, for an architecture that is published under several; null
  /// where names are as they are described.
  std::string (*stored_name)(const Checkpoint& checkpoint, const std::string& described) = nullptr;
  /// The part as this checkpoint holds it, for an architecture whose tensors are published stacked as well as apart;
  /// null where only names differ.
  ProjectionPart (*stored_part)(const Checkpoint& checkpoint, const ProjectionPart& described) = nullptr;
};

/// The architecture of config.model_type; Error::unsupported names it and lists the known ones.
const Architecture& find_architecture(const ModelConfig& config);

/// The projections of a model, described for admission. Types and scales are those of the checkpoint's tensors; without
/// a checkpoint (`plan --like`) those that the config announces. Errors name the tensor or the config's key.
std::vector<Projection> describe_projections(const ModelConfig& config, const Topology& topology,
                                             const Checkpoint* checkpoint);

}  // namespace qpn8
