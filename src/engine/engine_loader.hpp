#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/model_config.hpp"
#include "engine/engine_options.hpp"
#include "engine/load_observer.hpp"
#include "model/model.hpp"
#include "route/plan.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {

/// The parts of a loaded model. Later members refer to earlier ones.
struct LoadedModel {
  Checkpoint checkpoint;
  Plan plan;
  std::int64_t context_length = 0;
  std::vector<TokenId> end_tokens;
  std::optional<Tokenizer> tokenizer;
  std::int64_t max_rows = 0;  ///< most tokens a pass
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Cache> cache;
};

/// Loads a folder as Engine's constructor documents. What can fail cheaply comes first: options, config, headers, plan,
/// tokenizer; then the weights.
LoadedModel load_model(const std::filesystem::path& folder, const EngineOptions& options, const LoadObserver& observer);

/// The backend of a plan's hardware, with the workspace that the plan asks for.
std::unique_ptr<Backend> make_backend(const EngineOptions& options, const Plan& plan);

/// Makes the kernels those of this hardware. The instruction set is the process's, so an engine selects its own before
/// it computes: two engines that force different ones may take turns. Error::missing_capability if the machine lacks
/// it.
void select_kernels(const Hardware& hardware);

/// Tokens a sequence: `max_model_len`, or the config's positions if that is 0. Error::bad_argument if it is more than
/// the model has positions for, or if neither says.
std::int64_t context_length(const ModelConfig& config, std::int64_t max_model_len);

/// The ids that end an output: generation_config.json's, or config.json's if it has none. Error::bad_file names the
/// file and an id outside the vocabulary.
std::vector<TokenId> end_tokens(const ModelConfig& config, const GenerationConfig& generation,
                                const std::filesystem::path& folder);

}  // namespace qpn8
