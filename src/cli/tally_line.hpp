#pragma once

#include <chrono>

#include "evidence/ab_runner.hpp"

namespace qpn8::cli {

/// One line on stderr that says how far a comparison is and how the arms stand, rewritten in place, and wiped at the
/// end. Shown only where stderr is a terminal and the log level lets `info` through.
class TallyLine {
 public:
  TallyLine();
  ~TallyLine();
  TallyLine(const TallyLine&) = delete;
  TallyLine& operator=(const TallyLine&) = delete;

  void show(const AbTally& tally);

 private:
  bool visible_;
  bool shown_ = false;
  std::size_t first_done_ = 0;  ///< items that an earlier run had done
  std::chrono::steady_clock::time_point start_;
};

}  // namespace qpn8::cli
