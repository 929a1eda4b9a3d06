#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/deepseek_v4_config.hpp"
#include "model/architecture.hpp"

// The parts of the deepseek_v4 architecture that deepseek_v4.cpp puts together; docs/deepseek_v4.md has its formulas.

namespace qpn8 {

/// The projections of one rank. Errors as in decoder_projections.
std::vector<Projection> deepseek_v4_projections(const ModelConfig& config, const Topology& topology);

std::unique_ptr<Model> load_deepseek_v4(const ModelSource& source);

/// Tensors are described by the names under which DeepSeek publishes them; this one's is under which a checkpoint that
/// a library has saved again holds it, if this is one.
std::string deepseek_v4_stored_name(const Checkpoint& checkpoint, const std::string& published);

}  // namespace qpn8
