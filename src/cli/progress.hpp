#pragma once

#include <cstdint>
#include <string>

namespace qpn8::cli {

/// One line on stderr that says how far long work is, rewritten in place, and wiped at the end. Shown only where stderr
/// is a terminal and the log level lets `info` through.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Rewrites the line when the percentage has changed.
  void show(std::int64_t done, std::int64_t total);

 private:
  std::string what_;
  bool visible_;
  std::int64_t percent_ = -1;
};

}  // namespace qpn8::cli
