#include "cli/progress.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace qpn8::cli {

Progress::Progress(std::string what)
    : what_(std::move(what)), visible_(isatty(STDERR_FILENO) != 0 && spdlog::should_log(spdlog::level::info)) {}

Progress::~Progress() {
  if (percent_ >= 0) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(std::int64_t done, std::int64_t total) {
  const std::int64_t percent = total > 0 ? done * 100 / total : 100;
  if (!visible_ || percent == percent_) return;
  percent_ = percent;
  std::fputs(fmt::format("\r{} {} %", what_, percent).c_str(), stderr);
}

}  // namespace qpn8::cli
