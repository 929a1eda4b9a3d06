#include "cli/progress.hpp"

#include <fmt/format.h>

#include <utility>

namespace qpn8::cli {

Progress::Progress(std::string what) : what_(std::move(what)) {}

void Progress::show(std::int64_t done, std::int64_t total) {
  const std::int64_t percent = total > 0 ? done * 100 / total : 100;
  if (percent == percent_) return;
  percent_ = percent;
  line_.show(fmt::format("{} {} %", what_, percent));
}

}  // namespace qpn8::cli
