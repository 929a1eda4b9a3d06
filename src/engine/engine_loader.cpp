#include "engine/engine_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "backend/cpu_backend.hpp"
#include "backend/cuda_backend.hpp"
#include "engine/route_planner.hpp"
#include "kernels/cpu/isa.hpp"
#include "model/architecture.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

std::size_t workspace_bytes(const Plan& plan) {
  return plan.workspace_bytes() > 0 ? static_cast<std::size_t>(plan.workspace_bytes()) : Workspace::kDefaultBytes;
}

std::int64_t weights_of(const PlannedProjection& projection) {
  return projection.tensor.k * projection.tensor.n * projection.tensor.groups;
}

void load_weights(LoadedModel& loaded, const std::vector<Projection>& projections, const LoadObserver& observer) {
  const ModelConfig& config = loaded.front.config();
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

void make_cache(LoadedModel& loaded) {
  const EngineOptions& options = loaded.front.options();
  const std::int64_t context = loaded.front.context_length();
  try {
    loaded.cache = loaded.model->make_cache(options.max_num_seqs, context, options.kv_dtype);
  } catch (const std::bad_alloc&) {
    throw Error(Error::missing_capability,
                fmt::format("max_model_len: keys and values of {} x {} tokens do not fit into memory; a smaller "
                            "--engine-arg max_model_len=N needs less",
                            options.max_num_seqs, context));
  }
}

}  // namespace

std::unique_ptr<Backend> make_backend(const EngineOptions& options, const Hardware& hardware,
                                      std::size_t workspace_bytes) {
  if (hardware.kind == HardwareKind::cuda) {
    return make_cuda_backend({.threads = options.threads, .workspace_bytes = workspace_bytes});
  }
  return make_cpu_backend(
      {.threads = options.threads, .workspace_bytes = workspace_bytes, .isa = cpu::parse_isa(hardware.isa)});
}

std::unique_ptr<Backend> make_backend(const EngineOptions& options, const Plan& plan) {
  return make_backend(options, plan.hardware(), workspace_bytes(plan));
}

void select_kernels(const Hardware& hardware) {
  if (hardware.kind == HardwareKind::cpu) cpu::use_isa(cpu::parse_isa(hardware.isa));
}

LoadedModel load_model(FrontEnd front, const LoadObserver& observer, const BackendWrapper& wrap) {
  const EngineOptions& options = front.options();
  select_kernels(front.hardware());
  Checkpoint checkpoint(front.folder());
  const std::vector<Projection> projections = describe_projections(front.config(), topology_of(options), &checkpoint);
  Plan plan = plan_routes(front.rules(), options, front.hardware(), projections);
  if (observer.planned) observer.planned(plan);

  const std::int64_t max_rows = std::min(options.prefill_chunk, front.context_length());
  LoadedModel loaded{.front = std::move(front),
                     .checkpoint = std::move(checkpoint),
                     .plan = std::move(plan),
                     .max_rows = max_rows,
                     .backend = nullptr,
                     .model = nullptr,
                     .cache = nullptr};
  loaded.backend = make_backend(loaded.front.options(), loaded.plan);
  loaded.backend->require_room(loaded.plan);
  if (wrap) loaded.backend = wrap(std::move(loaded.backend));
  load_weights(loaded, projections, observer);
  make_cache(loaded);
  return loaded;
}

}  // namespace qpn8
