#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// Puts something between a model and its device, such as a Backend that records; takes the backend over.
using BackendWrapper = std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend>)>;

/// Loads what the front end was made for, as Engine's constructor documents: headers, plan, and then the weights, on
/// the backend that `wrap` makes of the device's, if it is given.
LoadedModel load_model(FrontEnd front, const LoadObserver& observer, const BackendWrapper& wrap = nullptr);

/// The device of an engine with these options, with `workspace_bytes` for its products. Errors as in load_model.
std::unique_ptr<Backend> make_backend(const EngineOptions& options, const Hardware& hardware,
                                      std::size_t workspace_bytes);

/// The backend of a plan's hardware, with the workspace that the plan asks for.
std::unique_ptr<Backend> make_backend(const EngineOptions& options, const Plan& plan);

/// Makes the kernels those of this hardware. The instruction set is the process's, so an engine selects its own before
/// it computes: two engines that force different ones may take turns. Error::missing_capability if the machine lacks
/// it.
void select_kernels(const Hardware& hardware);

}  // namespace qpn8
