#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.hpp"
#include "checkpoint/checkpoint.hpp"
#include "engine/front_end.hpp"
#include "engine/load_observer.hpp"
#include "model/model.hpp"
#include "route/plan.hpp"

namespace qpn8 {

/// The parts of a loaded model. Later members refer to earlier ones.
struct LoadedModel {
  FrontEnd front;
  Checkpoint checkpoint;
  Plan plan;
  std::int64_t max_rows = 0;  ///< most tokens a pass
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Cache> cache;
};

/// Loads what the front end was made for, as Engine's constructor documents: headers, plan, and then the weights.
LoadedModel load_model(FrontEnd front, const LoadObserver& observer);

/// Makes the kernels those of this hardware. The instruction set is the process's, so an engine selects its own before
/// it computes: two engines that force different ones may take turns. Error::missing_capability if the machine lacks
/// it.
void select_kernels(const Hardware& hardware);

}  // namespace qpn8
