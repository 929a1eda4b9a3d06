#pragma once

#include <string>
#include <vector>

#include "measure/bench.hpp"

namespace qpn8 {

/// A figure that is promised, and what a run saw of it. docs/performance.md has the list.
struct Bar {
  int number = 0;  ///< of the promise; one promise may have several figures
  std::string what;
  double seen = 0;
  double limit = 0;
  bool at_least = true;  ///< seen must be at least the limit; otherwise at most

  bool holds() const { return at_least ? seen >= limit : seen <= limit; }
};

/// Every bar that the run measured what is needed for. Each is a ratio of samples of the same rounds, and its median.
/// A model that fits the cache has those of the operators alone: its figures are not about memory.
std::vector<Bar> bars_of(const BenchResult& result);

/// Whether the last-level cache holds what a decode step reads, so that the read probe does not bound it; without one
/// named, a step on QPN8.
bool fits_cache(const DecodeResult& decode, const BenchResult& result);
bool fits_cache(const BenchResult& result);

}  // namespace qpn8
