#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "evidence/ab_schedule.hpp"
#include "evidence/arm.hpp"
#include "evidence/dataset.hpp"
#include "evidence/item_log.hpp"
#include "evidence/statistics.hpp"

namespace qpn8 {

/// What a comparison runs.
struct AbRun {
  std::vector<DatasetItem> items;
  std::vector<std::uint64_t> seeds;  ///< every item once a seed
};

/// How far a comparison is.
struct AbTally {
  std::size_t done = 0;  ///< items, resumed ones included
  std::size_t total = 0;
  PairedCounts correct;       ///< of the items that have an expected answer
  double decode_ratio = 0.0;  ///< median of B over A so far; 0 if there is none
};

/// Error::bad_file names the log's file and an item in it that is not of this run: what a comparison says must rest on
/// what was asked, and what is left out silently is as wrong as what is counted.
void require_items_of(const AbRun& run, const ItemLog& log);

enum class AbEnd : std::uint8_t { finished, interrupted };

struct AbHooks {
  std::function<bool()> interrupted;             ///< asked before every output
  std::function<void()> first_item_done;         ///< told once, before the first item is appended to the log
  std::function<void(const AbTally&)> progress;  ///< told after every item, and once before the first
};

/// Runs what the log does not hold yet, one request at a time, interleaved as ab_schedule.hpp says. `b` is the
/// candidate; `a` runs twice, the second time as A/A. Each arm answers one item unrecorded first, as its first pass
/// pays for memory and caches. Errors of an arm end the run with "arm b, item 17: " before them; what is in the log
/// stays there. A log with items of another run is refused as by require_items_of.
AbEnd run_ab(const AbRun& run, Arm& a, Arm& b, ItemLog& log, const AbHooks& hooks);

}  // namespace qpn8
