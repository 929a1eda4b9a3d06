#include "cli/interrupt.hpp"

#include <cstdlib>

namespace qpn8::cli {
namespace {

// A signal handler reaches nothing but objects of static storage; this one is what a handler may write.
volatile std::sig_atomic_t noted_signal = 0;

extern "C" void note_signal(int signal) { noted_signal = signal; }

}  // namespace

InterruptGuard::InterruptGuard() {
  noted_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, &previous_int_);
  sigaction(SIGTERM, &action, &previous_term_);
}

InterruptGuard::~InterruptGuard() { restore(); }

void InterruptGuard::restore() {
  if (!active_) return;
  active_ = false;
  sigaction(SIGINT, &previous_int_, nullptr);
  sigaction(SIGTERM, &previous_term_, nullptr);
}

int InterruptGuard::signal() const { return noted_signal; }

void InterruptGuard::raise_again() {
  const int signal = noted_signal;
  restore();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::abort();
}

}  // namespace qpn8::cli
