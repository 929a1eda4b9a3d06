#pragma once

#include <cstdint>
#include <string>

#include "cli/status_line.hpp"

namespace qpn8::cli {

/// The status line of long work: how many percent of it are done.
class Progress {
 public:
  explicit Progress(std::string what);

  /// Rewrites the line when the percentage has changed.
  void show(std::int64_t done, std::int64_t total);

 private:
  std::string what_;
  StatusLine line_;
  std::int64_t percent_ = -1;
};

}  // namespace qpn8::cli
