#include "cli/tally_line.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace qpn8::cli {
namespace {

std::string remaining(double seconds) {
  const auto whole = static_cast<long>(seconds);
  if (whole < 90) return fmt::format("{} s left", whole);
  if (whole < 5400) return fmt::format("{} min left", (whole + 30) / 60);
  return fmt::format("{:.1f} h left", seconds / 3600);
}

}  // namespace

TallyLine::TallyLine()
    : visible_(isatty(STDERR_FILENO) != 0 && spdlog::should_log(spdlog::level::info)),
      start_(std::chrono::steady_clock::now()) {}

TallyLine::~TallyLine() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void TallyLine::show(const AbTally& tally) {
  if (!visible_) return;
  if (!shown_) first_done_ = tally.done;
  shown_ = true;
  const PairedCounts& correct = tally.correct;
  std::string line = fmt::format("ab {}/{}  right A {} B {} of {}  discordant {}  B/A {:.2f}x", tally.done, tally.total,
                                 correct.both + correct.only_a, correct.both + correct.only_b, correct.total(),
                                 correct.discordant(), tally.decode_ratio);
  if (tally.done > first_done_) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    const auto done_here = static_cast<double>(tally.done - first_done_);
    line += "  " + remaining(passed.count() / done_here * static_cast<double>(tally.total - tally.done));
  }
  std::fputs(fmt::format("\r{}\x1b[K", line).c_str(), stderr);
}

}  // namespace qpn8::cli
