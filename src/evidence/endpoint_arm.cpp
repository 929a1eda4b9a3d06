#include "evidence/endpoint_arm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "evidence/completion_stream.hpp"
#include "evidence/sse_parser.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostErrorText = 300;
constexpr std::size_t kMostRefusal = std::size_t{64} << 10;  ///< bytes read of a body that says why there is no answer

std::string text_arg(const Json& args, const char* key) {
  const auto found = args.find(key);
  if (found == args.end()) {
    throw Error(Error::bad_argument,
                fmt::format("endpoint: no {}; expected endpoint=http://host:port/v1 model=NAME", key));
  }
  return found->is_string() ? found->get<std::string>() : describe(*found);
}

int count_arg(const Json& args, const char* key, int fallback, int minimum) {
  const auto found = args.find(key);
  if (found == args.end()) return fallback;
  if (!found->is_number_integer() || found->get<std::int64_t>() < minimum || found->get<std::int64_t>() > 1'000'000) {
    throw Error(Error::bad_argument,
                fmt::format("{}={}: expected an integer of at least {}", key, describe(*found), minimum));
  }
  return found->get<int>();
}

bool is_temporary(int status) { return status == 408 || status == 429 || status >= 500; }

/// What a server says of a failure: the message of its JSON, else the start of its text, in one line.
std::string error_text(const std::string& body) {
  const std::optional<Json> json = try_parse_json(body);
  if (!json || !json->is_object() || !json->contains("error")) return printable(body, kMostErrorText);
  const Json& error = json->at("error");
  const Json& message = error.is_object() && error.contains("message") ? error.at("message") : error;
  return message.is_string() ? in_quotes(message.get_ref<const std::string&>(), kMostErrorText) : describe(message);
}

std::string request_body(const EndpointOptions& options, const GenerationRequest& request,
                         std::span<const ChatMessage> messages, std::uint64_t seed) {
  Json list = Json::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  Json body = {{"model", options.model},
               {"messages", std::move(list)},
               {"max_tokens", request.max_tokens},
               {"temperature", request.sampling.temperature},
               {"top_p", request.sampling.top_p},
               {"seed", seed},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  if (!request.stop.empty()) body["stop"] = request.stop;
  // Extensions of the protocol, which a strict server refuses: sent only where they are asked for.
  const SamplingOptions plain;
  const SamplingOptions& sampling = request.sampling;
  if (sampling.top_k != plain.top_k) body["top_k"] = sampling.top_k;
  if (sampling.min_p != plain.min_p) body["min_p"] = sampling.min_p;
  if (sampling.repetition_penalty != plain.repetition_penalty) body["repetition_penalty"] = sampling.repetition_penalty;
  if (request.ignore_eos) body["ignore_eos"] = true;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

EndpointOptions EndpointOptions::parse(const Json& args) {
  static constexpr std::array<std::string_view, 5> kKnown = {"endpoint", "model", "timeout_s", "request_timeout_s",
                                                             "retries"};
  for (const auto& [key, value] : args.items()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) {
      throw Error(Error::bad_argument, fmt::format("{}: not an argument of an arm that is a server; known: {}", key,
                                                   fmt::join(kKnown, ", ")));
    }
  }
  EndpointOptions options;
  options.endpoint = text_arg(args, "endpoint");
  options.model = text_arg(args, "model");
  options.timeout_s = count_arg(args, "timeout_s", options.timeout_s, 1);
  options.request_timeout_s = count_arg(args, "request_timeout_s", options.request_timeout_s, 1);
  options.retries = count_arg(args, "retries", options.retries, 0);
  return options;
}

EndpointArm::EndpointArm(EndpointOptions options, GenerationRequest request, std::chrono::milliseconds retry_wait)
    : options_(std::move(options)),
      request_(std::move(request)),
      retry_wait_(retry_wait),
      target_(HttpTarget::parse(options_.endpoint)) {
  while (target_.path.ends_with('/')) target_.path.pop_back();
  target_.path += "/chat/completions";
}

ArmOutput EndpointArm::generate(std::span<const ChatMessage> messages, std::uint64_t seed) {
  const std::string body = request_body(options_, request_, messages, seed);
  std::chrono::milliseconds wait = retry_wait_;
  for (int retries = 0;; ++retries) {
    Attempt result = attempt(body);
    if (result.output) {
      result.output->retries = retries;
      return std::move(*result.output);
    }
    if (!result.retry || retries == options_.retries) {
      throw Error(Error::bad_argument,
                  fmt::format("endpoint={}: {} (attempt {})", options_.endpoint, result.failure, retries + 1));
    }
    std::this_thread::sleep_for(wait);
    wait *= 2;
  }
}

EndpointArm::Attempt EndpointArm::attempt(const std::string& body) const {
  std::vector<std::pair<std::string, std::string>> headers = {{"Accept", "text/event-stream"}};
  if (const char* key = std::getenv("OPENAI_API_KEY")) {
    headers.emplace_back("Authorization", std::string("Bearer ") + key);
  }
  SseParser parser;
  CompletionStream stream(std::chrono::steady_clock::now(), request_.max_tokens);
  std::string refusal;
  std::string fault;
  const HttpBodySink sink = [&](int status, std::string_view piece) {
    if (status != 200) {
      refusal += piece.substr(0, kMostRefusal - refusal.size());
      return refusal.size() < kMostRefusal;
    }
    try {
      const auto now = std::chrono::steady_clock::now();
      parser.push(piece, [&](std::string_view event) { stream.event(event, now); });
      return !stream.done();  // some servers keep the connection open behind the last event
    } catch (const Error& error) {
      fault = error.what();
      return false;
    }
  };
  const HttpOutcome outcome = post_json(target_, headers, body, limits(), sink);
  using End = HttpOutcome::End;
  if (!fault.empty()) return {std::nullopt, fault, false};
  if (outcome.status != 0 && outcome.status != 200) {
    return {std::nullopt, fmt::format("status {}: {}", outcome.status, error_text(refusal)),
            is_temporary(outcome.status)};
  }
  if (outcome.end == End::broke_limit) return {std::nullopt, outcome.failure, false};
  if (stream.done() || (outcome.end == End::complete && stream.complete())) return finished(stream);
  if (stream.started()) return {std::nullopt, "the answer was cut off before its end", true};
  if (outcome.status == 200) {
    return {std::nullopt, "status 200, and no event followed (a prompt too long for it? its log may tell)", true};
  }
  return {std::nullopt, "no answer (" + outcome.failure + ")", true};
}

EndpointArm::Attempt EndpointArm::finished(CompletionStream& stream) {
  try {
    return {stream.finish(), {}, false};
  } catch (const Error& error) {
    return {std::nullopt, error.what(), false};
  }
}

HttpLimits EndpointArm::limits() const {
  // An event of one token takes some 300 bytes; what is not a token's (comments that keep a connection open, events of
  // roles and usage) has a megabyte.
  constexpr std::int64_t kBytesAToken = 4096;
  constexpr std::int64_t kOther = std::int64_t{1} << 20;
  constexpr std::int64_t kMostCountedTokens = std::int64_t{1} << 20;
  return {.silence = std::chrono::seconds(options_.timeout_s),
          .total = std::chrono::seconds(options_.request_timeout_s),
          .body_bytes =
              static_cast<std::size_t>(kOther + kBytesAToken * std::min(request_.max_tokens, kMostCountedTokens))};
}

Json EndpointArm::config() const {
  return {{"endpoint", options_.endpoint},
          {"model", options_.model},
          {"timeout_s", options_.timeout_s},
          {"request_timeout_s", options_.request_timeout_s},
          {"retries", options_.retries}};
}

}  // namespace qpn8
