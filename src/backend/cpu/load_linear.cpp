#include "backend/cpu/load_linear.hpp"

#include <utility>

#include "backend/cpu/weight_part.hpp"

namespace qpn8::cpu {
namespace {

std::unique_ptr<CpuLinear> load_one(const LinearSource& source, ThreadTeam& team) {
  if (!source.parts.empty() && is_fp4(source.parts.front())) return load_fp4(source, team);
  if (source.plan->route == Route::qpn8) return load_packed(source, team);
  return load_dense(source, team);
}

}  // namespace

std::unique_ptr<CpuLinear> load_linear(const LinearSource& source, ThreadTeam& team) {
  const std::int64_t groups = source.plan->tensor.groups;
  if (groups == 1) return load_one(source, team);
  PlannedProjection plan = *source.plan;
  plan.tensor.groups = 1;
  std::vector<std::unique_ptr<CpuLinear>> loaded;
  for (std::int64_t group = 0; group < groups; ++group) {
    LinearSource one = {.plan = &plan, .checkpoint = source.checkpoint, .parts = {}, .bias = {}};
    one.parts = rows_of(source.parts, group * plan.tensor.n, plan.tensor.n);
    loaded.push_back(load_one(one, team));
  }
  return std::make_unique<GroupedLinear>(std::move(loaded), source.bias);
}

}  // namespace qpn8::cpu
