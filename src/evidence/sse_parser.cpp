#include "evidence/sse_parser.hpp"

#include <fmt/format.h>

#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

void require_room(std::string_view what, std::size_t bytes) {
  if (bytes <= SseParser::kMostBytes) return;
  throw Error(Error::bad_value, fmt::format("{} of its stream goes on beyond {} bytes", what, SseParser::kMostBytes));
}

}  // namespace

void SseParser::push(std::string_view piece, const std::function<void(std::string_view)>& on_data) {
  for (const char c : piece) {
    if (c == '\n') {
      end_line(on_data);
    } else if (c != '\r') {
      require_room("a line", line_.size() + 1);
      line_ += c;
    }
  }
}

void SseParser::end_line(const std::function<void(std::string_view)>& on_data) {
  if (line_.empty()) {
    if (has_data_) on_data(data_);
    data_.clear();
    has_data_ = false;
    return;
  }
  static constexpr std::string_view kData = "data:";
  if (line_.starts_with(kData)) {
    std::string_view value = line_;
    value.remove_prefix(kData.size());
    if (value.starts_with(' ')) value.remove_prefix(1);
    require_room("an event", data_.size() + 1 + value.size());
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  line_.clear();
}

}  // namespace qpn8
