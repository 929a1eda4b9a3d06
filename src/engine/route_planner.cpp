#include "engine/route_planner.hpp"

#include <string>
#include <utility>

#include "backend/cuda_backend.hpp"
#include "kernels/cpu/isa.hpp"
#include "qpn8/error.hpp"
#include "route/contract_file.hpp"

namespace qpn8 {

Hardware chosen_hardware(const EngineOptions& options) {
  if (options.device != "cpu") {
    const CudaDevice gpu = find_cuda_device();
    const bool wants_cpu = options.device == "auto" && !options.cpu_isa.empty();
    if (gpu.hardware && !wants_cpu) return *gpu.hardware;
    if (options.device == "cuda") {
      throw Error(Error::missing_capability,
                  "device \"cuda\": " + gpu.absence + "; --device cpu, or auto, does without a GPU");
    }
  }
  const cpu::Isa isa = options.cpu_isa.empty() ? cpu::available_isas().front() : cpu::parse_isa(options.cpu_isa);
  return {.kind = HardwareKind::cpu, .isa = std::string(cpu::to_string(isa))};
}

Topology topology_of(const EngineOptions& options) {
  return {.tp = options.tp, .pp = options.pp, .max_sequences = options.max_num_seqs};
}

RouteRules read_route_rules(const EngineOptions& options) {
  std::vector<Contract> contracts = load_contracts(options.contracts);
  Rollback rollback = read_rollback(options.qpn8, process_environment(), contracts);
  return {std::move(contracts), std::move(rollback)};
}

Plan plan_routes(const RouteRules& rules, const EngineOptions& options, const Hardware& hardware,
                 const std::vector<Projection>& projections) {
  std::vector<ProjectionDesc> described;
  described.reserve(projections.size());
  for (const Projection& projection : projections) described.push_back(projection.desc);
  return make_plan(hardware, topology_of(options), described, rules.contracts, rules.rollback);
}

Plan plan_routes(const EngineOptions& options, const Hardware& hardware, const std::vector<Projection>& projections) {
  return plan_routes(read_route_rules(options), options, hardware, projections);
}

}  // namespace qpn8
