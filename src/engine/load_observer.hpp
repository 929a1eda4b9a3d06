#pragma once

#include <cstdint>
#include <functional>

#include "route/plan.hpp"

namespace qpn8 {

/// Follows the loading of a model. The library prints nothing itself; both calls come from the loading thread, and what
/// they throw ends the loading.
struct LoadObserver {
  /// The routes are decided; loading weights is next. `summary_line(plan)` is what a program prints at start-up.
  std::function<void(const Plan& plan)> planned;

  /// Loading weights begins (0 done), or a projection is on its device: weights loaded so far, of how many.
  std::function<void(std::int64_t done, std::int64_t total)> loaded;
};

}  // namespace qpn8
