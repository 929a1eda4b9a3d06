#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/model_config.hpp"
#include "engine/engine_loader.hpp"
#include "evidence/audit_recorder.hpp"
#include "model/architecture.hpp"

namespace qpn8 {

/// What is run to capture activations unless a text is given.
extern const char* const kAuditText;

/// A product that is audited by itself.
struct AuditedUnit {
  PlannedProjection planned;  ///< of one group; its name is the projection's, with the group's number where it has some
  std::string projection;     ///< the plan's name
  std::int64_t group = 0;
};

/// A checkpoint whose projections are to be audited: its plan, its device, and what a forward pass feeds each of them.
struct AuditedModel {
  ModelConfig config;
  Checkpoint checkpoint;
  Plan plan;
  std::vector<Projection> projections;
  std::unique_ptr<Backend> backend;
  RecordedInputs captured;
  std::int64_t captured_tokens = 0;
  std::vector<AuditedUnit> units;  ///< the plan's projections, those of several groups a group at a time
  bool has_tokenizer = false;      ///< without one the forward pass runs ids spread over the vocabulary, not the text

  /// What a unit is loaded from, without its bias, which is no part of the product. Valid as long as this and the unit
  /// stay where they are.
  LinearSource source(const AuditedUnit& unit) const;
};

/// Loads a model as an engine with these options does, runs `text` through it and lets the model go again. Errors as
/// in load_model; Error::missing_capability if no projection is on QPN8.
AuditedModel open_audited_model(const std::filesystem::path& folder, const EngineOptions& options,
                                const std::string& text, const LoadObserver& observer);

}  // namespace qpn8
