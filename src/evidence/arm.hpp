#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace qpn8 {

struct ChatMessage {
  std::string role;  ///< "user" or "assistant"
  std::string content;
};

/// What an arm answered to one request.
struct ArmOutput {
  std::string text;
  std::vector<std::int32_t> tokens;  ///< ids; or, where a server gives none, its pieces numbered by first appearance
  bool tokens_are_ids = true;        ///< pieces can be compared within an output, never between outputs
  std::int64_t token_count = 0;
  std::string finish_reason;         ///< "stop", "length", or what a server says
  double ttft_ms = 0.0;              ///< from the request to the first token
  double decode_tokens_per_s = 0.0;  ///< (tokens - 1) / (last - first token's time); 0 for fewer than two
  int retries = 0;                   ///< attempts that failed before this output
};

/// One side of a comparison: something that answers a conversation.
class Arm {
 public:
  Arm() = default;
  virtual ~Arm() = default;
  Arm(const Arm&) = delete;
  Arm& operator=(const Arm&) = delete;

  /// Answers the last message. An Error ends the comparison.
  virtual ArmOutput generate(std::span<const ChatMessage> messages, std::uint64_t seed) = 0;

  /// What the arm is made of, as the result file records it; without secrets.
  virtual nlohmann::ordered_json config() const = 0;

  /// The plan that runs, as `qpn8 plan --json` prints it; nothing for an arm that has no plan to show.
  virtual std::optional<nlohmann::ordered_json> plan() const = 0;
};

}  // namespace qpn8
