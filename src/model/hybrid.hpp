#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/hybrid_config.hpp"
#include "model/architecture.hpp"

// Decoders of linear and full attention layers: qwen4_exp and its relatives. docs/qwen4_exp.md has their formulas and
// where each lives.

namespace qpn8 {

/// The projections of one rank, layer by layer. Errors as decoder_projections().
std::vector<Projection> hybrid_projections(const ModelConfig& config, const Topology& topology);

std::unique_ptr<Model> load_hybrid(const ModelSource& source);

/// Names are described as text models are saved; a multimodal checkpoint has its decoder under "model.language_model.".
std::string hybrid_stored_name(const Checkpoint& checkpoint, const std::string& described);

/// An expert's rows where a layer's experts are stored as one tensor.
ProjectionPart hybrid_stored_part(const Checkpoint& checkpoint, const ProjectionPart& described);

/// Outputs of the fused down and injection projection of a gated residual: its rank and a value a stream, up to a
/// multiple of 16.
std::int64_t down_inject_rows(const HybridConfig& details);

}  // namespace qpn8
