#include "cli/status_line.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>

namespace qpn8::cli {
namespace {

constexpr const char* kEraseToTheEnd = "\x1b[K";

}  // namespace

StatusLine::StatusLine() : visible_(isatty(STDERR_FILENO) != 0 && spdlog::should_log(spdlog::level::info)) {}

StatusLine::~StatusLine() {
  if (shown_) std::fputs(fmt::format("\r{}", kEraseToTheEnd).c_str(), stderr);
}

void StatusLine::show(std::string_view text) {
  if (!visible_) return;
  shown_ = true;
  std::fputs(fmt::format("\r{}{}", text, kEraseToTheEnd).c_str(), stderr);
}

}  // namespace qpn8::cli
