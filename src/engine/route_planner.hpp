#pragma once

#include <vector>

#include "engine/engine_options.hpp"
#include "model/architecture.hpp"
#include "route/plan.hpp"
#include "route/rollback.hpp"

namespace qpn8 {

/// The hardware that an engine with these options computes on; nothing is switched to it. Error::missing_capability if
/// this machine or this build lacks it.
Hardware chosen_hardware(const EngineOptions& options);

Topology topology_of(const EngineOptions& options);

/// What decides the routes beside the projections.
struct RouteRules {
  std::vector<Contract> contracts;
  Rollback rollback;
};

/// The shipped contracts and those of the options; the option `qpn8` and the process's variables. Errors as in
/// load_contracts and read_rollback.
RouteRules read_route_rules(const EngineOptions& options);

/// The routes of a model's projections. Errors as in make_plan.
Plan plan_routes(const RouteRules& rules, const EngineOptions& options, const Hardware& hardware,
                 const std::vector<Projection>& projections);

/// The same by the rules of the options.
Plan plan_routes(const EngineOptions& options, const Hardware& hardware, const std::vector<Projection>& projections);

}  // namespace qpn8
