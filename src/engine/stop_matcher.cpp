#include "engine/stop_matcher.hpp"

#include <algorithm>
#include <utility>

#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

// Bytes of `text` matched after one more byte, given that `state` of them were matched before.
std::size_t advance(std::string_view text, const std::vector<std::size_t>& border, std::size_t state, char byte) {
  if (state == text.size()) state = border[state - 1];
  while (state > 0 && text[state] != byte) state = border[state - 1];
  return text[state] == byte ? state + 1 : 0;
}

}  // namespace

StopMatcher::StopMatcher(std::span<const std::string> stops) {
  for (const std::string& stop : stops) {
    if (stop.empty()) throw Error(Error::bad_argument, "stop: a stop text must not be empty");
    Pattern pattern{stop, std::vector<std::size_t>(stop.size(), 0), 0};
    std::size_t state = 0;
    for (std::size_t i = 1; i < stop.size(); ++i) {
      state = advance(stop, pattern.border, state, stop[i]);
      pattern.border[i] = state;
    }
    patterns_.push_back(std::move(pattern));
  }
}

std::string StopMatcher::push(std::string_view piece) {
  if (matched_) return {};
  std::size_t longest_prefix = 0;
  for (const char byte : piece) {
    held_.push_back(byte);
    longest_prefix = 0;
    std::size_t longest_match = 0;
    for (Pattern& pattern : patterns_) {
      pattern.state = advance(pattern.text, pattern.border, pattern.state, byte);
      longest_prefix = std::max(longest_prefix, pattern.state);
      if (pattern.state == pattern.text.size()) longest_match = std::max(longest_match, pattern.state);
    }
    if (longest_match > 0) {
      matched_ = true;
      held_.resize(held_.size() - longest_match);
      return std::exchange(held_, {});
    }
  }
  if (piece.empty()) return {};
  const std::size_t certain = held_.size() - longest_prefix;
  std::string text = held_.substr(0, certain);
  held_.erase(0, certain);
  return text;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace qpn8
