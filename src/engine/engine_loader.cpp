#include "engine/engine_loader.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "backend/cpu_backend.hpp"
#include "engine/route_planner.hpp"
#include "kernels/cpu/isa.hpp"
#include "model/architecture.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

// One rank runs everything so far; what the model could be split into has been checked by its projections.
void require_one_rank(const EngineOptions& options) {
  const auto refuse = [](const char* name, int value) {
    throw Error(Error::unsupported, "--" + std::string(name) + " " + std::to_string(value) +
                                        ": this qpn8 runs on one rank; legal value: 1");
  };
  if (options.tp > 1) refuse("tp", options.tp);
  if (options.pp > 1) refuse("pp", options.pp);
}

std::optional<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
  return Tokenizer(file);
}

std::int64_t weights_of(const PlannedProjection& projection) {
  return projection.tensor.k * projection.tensor.n * projection.tensor.groups;
}

void load_weights(LoadedModel& loaded, const ModelConfig& config, const std::vector<Projection>& projections,
                  const LoadObserver& observer) {
  std::int64_t total = 0;
  for (const PlannedProjection& projection : loaded.plan.projections()) total += weights_of(projection);
  std::int64_t done = 0;
  if (observer.loaded) observer.loaded(done, total);
  const ModelSource source = {.config = &config,
                              .checkpoint = &loaded.checkpoint,
                              .plan = &loaded.plan,
                              .projections = projections,
                              .backend = loaded.backend.get(),
                              .max_rows = loaded.max_rows,
                              .on_loaded = [&](const PlannedProjection& projection) {
                                done += weights_of(projection);
                                if (observer.loaded) observer.loaded(done, total);
                              }};
  loaded.model = find_architecture(config).load(source);
  if (observer.loaded) observer.loaded(total, total);  // a head tied to the embedding is never loaded itself
}

void make_cache(LoadedModel& loaded, const EngineOptions& options) {
  try {
    loaded.cache = loaded.model->make_cache(options.max_num_seqs, loaded.context_length, options.kv_dtype);
  } catch (const std::bad_alloc&) {
    throw Error(Error::missing_capability, "max_model_len: keys and values of " + std::to_string(options.max_num_seqs) +
                                               " x " + std::to_string(loaded.context_length) +
                                               " tokens do not fit into memory; a smaller --engine-arg "
                                               "max_model_len=N needs less");
  }
}

}  // namespace

std::unique_ptr<Backend> make_backend(const EngineOptions& options, const Plan& plan) {
  CpuBackendOptions cpu = {.threads = options.threads, .isa = cpu::parse_isa(plan.hardware().isa)};
  if (plan.workspace_bytes() > 0) cpu.workspace_bytes = static_cast<std::size_t>(plan.workspace_bytes());
  return make_cpu_backend(cpu);
}

void select_kernels(const Hardware& hardware) { cpu::use_isa(cpu::parse_isa(hardware.isa)); }

std::int64_t context_length(const ModelConfig& config, std::int64_t max_model_len) {
  if (max_model_len == 0 && config.max_positions == 0) {
    throw Error(Error::bad_argument, "max_model_len: " + config.file.string() +
                                         " has no max_position_embeddings, so the context's length must be given");
  }
  if (config.max_positions > 0 && max_model_len > config.max_positions) {
    throw Error(Error::bad_argument, "max_model_len: " + std::to_string(max_model_len) +
                                         " is more than the model has positions for; legal values: 1 to " +
                                         std::to_string(config.max_positions));
  }
  return max_model_len > 0 ? max_model_len : config.max_positions;
}

std::vector<TokenId> end_tokens(const ModelConfig& config, const GenerationConfig& generation,
                                const std::filesystem::path& folder) {
  const bool generations = !generation.eos_tokens.empty();
  std::vector<TokenId> ids;
  for (const std::int64_t id : generations ? generation.eos_tokens : config.eos_tokens) {
    if (id < 0 || id >= config.vocab_size) {
      const std::filesystem::path file = generations ? folder / "generation_config.json" : config.file;
      throw Error(Error::bad_file, file.string() + ": eos_token_id " + std::to_string(id) +
                                       " is outside the vocabulary of " + std::to_string(config.vocab_size));
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

LoadedModel load_model(const std::filesystem::path& folder, const EngineOptions& options,
                       const LoadObserver& observer) {
  const Hardware hardware = chosen_hardware(options);
  select_kernels(hardware);
  const ModelConfig config = load_model_config(folder);
  const std::int64_t context = context_length(config, options.max_model_len);
  std::vector<TokenId> ends = end_tokens(config, load_generation_config(folder), folder);
  const Topology topology = topology_of(options);
  find_architecture(config).projections(config, topology);
  require_one_rank(options);

  Checkpoint checkpoint(folder);
  const std::vector<Projection> projections = describe_projections(config, topology, &checkpoint);
  Plan plan = plan_routes(options, hardware, projections);
  if (observer.planned) observer.planned(plan);

  LoadedModel loaded{.checkpoint = std::move(checkpoint),
                     .plan = std::move(plan),
                     .context_length = context,
                     .end_tokens = std::move(ends),
                     .tokenizer = load_tokenizer(folder),
                     .max_rows = std::min(options.prefill_chunk, context),
                     .backend = nullptr,
                     .model = nullptr,
                     .cache = nullptr};
  loaded.backend = make_backend(options, loaded.plan);
  load_weights(loaded, config, projections, observer);
  make_cache(loaded, options);
  return loaded;
}

}  // namespace qpn8
