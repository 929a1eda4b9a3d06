#include "qpn8/schedule.hpp"

#include <fmt/format.h>

namespace qpn8 {

std::string to_string(const Schedule& schedule) {
  return fmt::format("(split {}, chains {}, {})", schedule.split_k, schedule.accumulator_chains,
                     schedule.prefetch ? "prefetch" : "no prefetch");
}

}  // namespace qpn8
