#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "measure/machine_probe.hpp"
#include "measure/samples.hpp"
#include "route/plan.hpp"

namespace qpn8 {

/// One product of m rows on one route.
struct OperatorResult {
  std::string role;
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t m = 0;
  Route route = Route::dense;
  std::int64_t bytes = 0;  ///< of weights and scales that a call reads
  Samples seconds;         ///< of a call
  Samples probe;           ///< bytes a second of the read probe, in the same rounds

  /// Bytes a second of each round, as a fraction of the probe's.
  Samples bandwidth_fraction() const;
};

/// The projections of a plan that differ in what an operator sees: role, shape, type, route, schedule. In plan order.
std::vector<PlannedProjection> distinct_operators(const Plan& plan);

/// A projection of random weights that no cache holds: the first that the plan has on QPN8, made so wide that its
/// packed weight is at least `bytes`. Its role is kBeyondCacheRole.
inline constexpr const char* kBeyondCacheRole = "beyond_cache";
PlannedProjection beyond_cache_operator(const PlannedProjection& model, std::int64_t bytes);

struct OperatorOptions {
  std::vector<std::int64_t> rows = {1, 2, 4, 8, 9, 64};
  /// Bytes of weights that the calls of one operator rotate through, and that the probe reads.
  std::int64_t rotation_bytes = 0;
  Repeats repeats;
};

/// The bytes to rotate through: twice the last-level cache of a CPU, so that hardly any of it is found there again;
/// eight times that of a GPU, of which the probe is to read the memory's speed and not the cache's.
std::int64_t default_rotation_bytes(const Hardware& hardware);

/// Measures the projection at each number of rows: on QPN8 if its plan says so, and dense (`dense_too`), beside the
/// read probe and in turn. Weights are random. Error::check_failed if a result is not finite.
std::vector<OperatorResult> measure_operator(Backend& backend, MachineProbe& probe, const PlannedProjection& projection,
                                             bool dense_too, const OperatorOptions& options,
                                             const std::function<void()>& on_sample = nullptr);

/// Samples that measure_operator takes.
std::int64_t samples_of_operator(const PlannedProjection& projection, bool dense_too, const OperatorOptions& options);

}  // namespace qpn8
