#include "kernels/cpu/qpn8_linear.hpp"

#include <fmt/format.h>

#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cpu {

void check_schedule(const Schedule& schedule, std::int64_t k) {
  const std::int64_t groups = k / kKGroup;
  if (schedule.split_k < 1 || groups % schedule.split_k != 0) {
    throw Error(Error::unsupported_shape,
                fmt::format("schedule {}: K={} has {} groups of {}, which split_k must divide", to_string(schedule), k,
                            groups, kKGroup));
  }
  const int chains = schedule.accumulator_chains;
  if (chains != 1 && chains != 2 && chains != 4) {
    throw Error(Error::unsupported_shape,
                fmt::format("schedule {}: accumulator_chains must be 1, 2 or 4", to_string(schedule)));
  }
}

void qpn8_linear(const PackedWeight& weight, const Schedule&, MatrixView<const float> x, MatrixView<float> y,
                 ThreadTeam& team) {
  team.for_ranges(weight.n, kTileColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t n = begin; n < end; ++n) {
        float sum = 0;
        for (std::int64_t k = 0; k < weight.k; ++k) {
          sum += x.data[i * x.stride + k] * decode_e4m3(code_at(weight, n, k)) * scale_at(weight, n, k);
        }
        y.data[i * y.stride + n] = sum;
      }
    }
  });
}

}  // namespace qpn8::cpu
