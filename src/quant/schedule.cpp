#include "qpn8/schedule.hpp"

#include <fmt/format.h>

#include "qpn8/pack.hpp"

namespace qpn8 {

std::string to_string(const Schedule& schedule) {
  return fmt::format("(split {}, chains {}, {})", schedule.split_k, schedule.accumulator_chains,
                     schedule.prefetch ? "prefetch" : "no prefetch");
}

std::string schedule_refusal(const Schedule& schedule, std::int64_t k) {
  const std::int64_t groups = k / kKGroup;
  if (schedule.split_k < 1 || groups % schedule.split_k != 0) {
    return fmt::format("schedule {}: K={} has {} groups of {}, and split_k must divide them", to_string(schedule), k,
                       groups, kKGroup);
  }
  const int chains = schedule.accumulator_chains;
  if (chains == 1 || chains == 2 || chains == 4) return {};
  return fmt::format("schedule {}: accumulator_chains must be 1, 2 or 4", to_string(schedule));
}

}  // namespace qpn8
