#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "cli/status_line.hpp"
#include "evidence/ab_runner.hpp"

namespace qpn8::cli {

/// The status line of a comparison: how far it is and how the arms stand.
class TallyLine {
 public:
  void show(const AbTally& tally);

 private:
  StatusLine line_;
  std::optional<std::size_t> first_done_;  ///< items that an earlier run had done
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace qpn8::cli
