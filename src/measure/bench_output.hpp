#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "measure/bench.hpp"

namespace qpn8 {

/// The keys of `qpn8 bench --json`; docs/performance.md lists them.
nlohmann::ordered_json to_json(const BenchResult& result);

/// For people: a table a part, then the bars.
std::string to_table(const BenchResult& result);

}  // namespace qpn8
