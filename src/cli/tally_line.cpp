#include "cli/tally_line.hpp"

#include <fmt/format.h>

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

void TallyLine::show(const AbTally& tally) {
  if (!line_.visible()) return;
  if (!first_done_) first_done_ = tally.done;
  const PairedCounts& correct = tally.correct;
  std::string text = fmt::format("ab {}/{}  right A {} B {} of {}  discordant {}  B/A {:.2f}x", tally.done, tally.total,
                                 correct.both + correct.only_a, correct.both + correct.only_b, correct.total(),
                                 correct.discordant(), tally.decode_ratio);
  if (tally.done > *first_done_) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    const auto done_here = static_cast<double>(tally.done - *first_done_);
    text += "  " + remaining(passed.count() / done_here * static_cast<double>(tally.total - tally.done));
  }
  line_.show(text);
}

}  // namespace qpn8::cli
