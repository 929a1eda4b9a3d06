#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/generation_request.hpp"
#include "evidence/arm.hpp"
#include "evidence/completion_stream.hpp"
#include "evidence/http_exchange.hpp"

namespace qpn8 {

/// A server that speaks the OpenAI chat completions protocol.
struct EndpointOptions {
  std::string endpoint;          ///< "http://host:port/v1"
  std::string model;             ///< the name that the server knows it by
  int timeout_s = 600;           ///< of silence
  int retries = 3;               ///< attempts after the first
  int request_timeout_s = 3600;  ///< of an attempt as a whole

  /// Whether an arm's arguments name a server.
  static bool is_endpoint(const nlohmann::ordered_json& args) { return args.contains("endpoint"); }

  /// Error::bad_argument for a missing or unknown argument, which lists the known ones, or one of the wrong type.
  static EndpointOptions parse(const nlohmann::ordered_json& args);
};

/// An arm that is a server. Answers are streamed and timed here, one request at a time, so its first-token time holds
/// the way there and back. A key is taken from the environment variable OPENAI_API_KEY and recorded nowhere.
class EndpointArm : public Arm {
 public:
  /// `request` is what each output is asked with; its prompt and its seed come with the item.
  EndpointArm(EndpointOptions options, GenerationRequest request,
              std::chrono::milliseconds retry_wait = std::chrono::milliseconds(500));

  /// A connection that fails, falls silent or is cut, and the statuses 408, 429 and 5xx, are tried again after a wait
  /// that doubles; the output says how often. An answer that never ends, or that is none of the protocol's, is the
  /// server's fault and ends it at once. Error::bad_argument names the endpoint and what it did last.
  ArmOutput generate(std::span<const ChatMessage> messages, std::uint64_t seed) override;
  nlohmann::ordered_json config() const override;
  std::optional<nlohmann::ordered_json> plan() const override { return std::nullopt; }

 private:
  /// What came of one attempt.
  struct Attempt {
    std::optional<ArmOutput> output;
    std::string failure;
    bool retry = false;
  };
  Attempt attempt(const std::string& body) const;
  static Attempt finished(CompletionStream& stream);
  HttpLimits limits() const;

  EndpointOptions options_;
  GenerationRequest request_;
  std::chrono::milliseconds retry_wait_;
  HttpTarget target_;
};

}  // namespace qpn8
