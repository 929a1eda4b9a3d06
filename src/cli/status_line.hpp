#pragma once

#include <string_view>

namespace qpn8::cli {

/// One line on stderr, rewritten in place and wiped at the end. Shown only where stderr is a terminal and the log level
/// lets `info` through.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Whether there is anybody to see it; making up a text for nobody can be left out.
  bool visible() const { return visible_; }
  void show(std::string_view text);

 private:
  bool visible_;
  bool shown_ = false;
};

}  // namespace qpn8::cli
