#pragma once

#include <vector>

#include "engine/engine_options.hpp"
#include "model/architecture.hpp"
#include "route/plan.hpp"

namespace qpn8 {

/// The hardware that an engine with these options computes on; nothing is switched to it. Error::missing_capability if
/// this machine or this build lacks it.
Hardware chosen_hardware(const EngineOptions& options);

Topology topology_of(const EngineOptions& options);

/// The routes of a model's projections: by the shipped contracts and those of the options, the option `qpn8` and the
/// process's variables. Errors as in load_contracts, read_rollback and make_plan.
Plan plan_routes(const EngineOptions& options, const Hardware& hardware, const std::vector<Projection>& projections);

}  // namespace qpn8
