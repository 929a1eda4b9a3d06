#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "evidence/arm.hpp"

namespace qpn8 {

/// Puts the events of a streamed OpenAI chat completion together and times them where they arrive.
///
/// The tokens are counted by the server's usage, if it sends one, else by the pieces it sent. Pieces of reasoning count
/// as tokens and are timed, and are no part of the text.
class CompletionStream {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `max_tokens` is what the request asked for at most.
  CompletionStream(Time start, std::int64_t max_tokens) : start_(start), max_tokens_(max_tokens) {}

  /// One event. Error::bad_value for one that holds the server's error, with its message, and for what is no answer of
  /// the protocol to a request for one choice: not JSON, a value of another type, another choice, an end by anything
  /// but `stop` or `length` or without either, more tokens than asked for.
  void event(std::string_view data, Time now);

  bool started() const { return started_; }  ///< whether anything came

  /// Whether the answer came to its end; one that did not was cut off.
  bool complete() const { return done_ || !output_.finish_reason.empty(); }

  /// Whether nothing more can come, not even the usage, which follows the answer's end.
  bool done() const { return done_; }

  /// Once it is complete. Error::bad_value if the server counts no tokens where there is text.
  ArmOutput finish();

 private:
  void count(const nlohmann::ordered_json& usage);
  void piece(const std::string& text, Time now);

  Time start_;
  std::int64_t max_tokens_;
  std::optional<Time> first_;
  std::optional<Time> last_;
  std::map<std::string, std::int32_t> numbers_;  ///< of the pieces
  std::optional<std::int64_t> counted_;          ///< by the server
  ArmOutput output_;
  bool started_ = false;
  bool done_ = false;
};

}  // namespace qpn8
