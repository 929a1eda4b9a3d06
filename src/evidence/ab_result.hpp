#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "evidence/ab_summary.hpp"
#include "evidence/item_log.hpp"
#include "evidence/verdict.hpp"

namespace qpn8 {

/// A finished comparison: what was asked, what came out, what follows. The reports are views of it.
struct AbResult {
  nlohmann::ordered_json run;       ///< what the command said: model, data set, seeds, settings, limits
  nlohmann::ordered_json config_a;  ///< A/A's too
  nlohmann::ordered_json config_b;
  nlohmann::ordered_json plan;  ///< B's; null for an arm that shows none
  VerdictLimits limits;
  std::vector<ItemRecords> items;
  AbSummary summary;
  Verdict verdict;
};

/// The whole of result.json, keys as design section 7 names them. Holds nothing that a resumed run would change.
nlohmann::ordered_json to_json(const AbResult& result);

}  // namespace qpn8
