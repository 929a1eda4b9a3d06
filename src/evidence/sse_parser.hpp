#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace qpn8 {

/// Reads a stream of server-sent events as it arrives, in pieces cut anywhere: "data:" lines of one event are joined by
/// line breaks; comments, other fields and carriage returns are dropped.
class SseParser {
 public:
  /// Of a line, and of the data of an event: some thousand times what an event of one token takes.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  /// Calls on_data for every event that this piece completes. Error::bad_value for a line or an event of more than
  /// kMostBytes.
  void push(std::string_view piece, const std::function<void(std::string_view)>& on_data);

 private:
  void end_line(const std::function<void(std::string_view)>& on_data);

  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace qpn8
