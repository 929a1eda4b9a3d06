#pragma once

#include <csignal>

namespace qpn8::cli {

/// While it lives, SIGINT and SIGTERM do not end the process but are noted, once: the second of a kind ends it at once.
/// One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal that came, or 0.
  int signal() const;

  /// Ends the process by the signal that came, so that whoever started it sees why it ended.
  [[noreturn]] void raise_again();

 private:
  void restore();

  struct sigaction previous_int_ {};
  struct sigaction previous_term_ {};
  bool active_ = true;
};

}  // namespace qpn8::cli
