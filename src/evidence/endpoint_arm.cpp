#include "evidence/endpoint_arm.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "evidence/completion_stream.hpp"
#include "evidence/sse_parser.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostErrorText = 300;

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
  for (const auto& [key, value] : args.items()) {
    if (key != "endpoint" && key != "model" && key != "timeout_s" && key != "retries") {
      throw Error(Error::bad_argument,
                  key + ": not an argument of an arm that is a server; known: endpoint, model, timeout_s, retries");
    }
  }
  EndpointOptions options;
  options.endpoint = text_arg(args, "endpoint");
  options.model = text_arg(args, "model");
  options.timeout_s = count_arg(args, "timeout_s", options.timeout_s, 1);
  options.retries = count_arg(args, "retries", options.retries, 0);
  return options;
}

EndpointArm::EndpointArm(EndpointOptions options, GenerationRequest request, std::chrono::milliseconds retry_wait)
    : options_(std::move(options)), request_(std::move(request)), retry_wait_(retry_wait) {
  const std::string& url = options_.endpoint;
  const std::size_t scheme = url.find("://");
  const bool known = url.starts_with("http://") || url.starts_with("https://");
  const std::size_t host = known ? scheme + 3 : 0;
  if (!known || host >= url.size() || url[host] == '/') {
    throw Error(Error::bad_argument, fmt::format("endpoint={}: expected http://host:port/v1", url));
  }
  const std::size_t path = std::min(url.find('/', host), url.size());
  host_ = url.substr(0, path);
  path_ = url.substr(path);
  while (path_.ends_with('/')) path_.pop_back();
  path_ += "/chat/completions";
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
  httplib::Client client(host_);
  client.set_connection_timeout(std::chrono::seconds(options_.timeout_s));
  client.set_read_timeout(std::chrono::seconds(options_.timeout_s));
  client.set_tcp_nodelay(true);

  SseParser parser;
  CompletionStream stream(std::chrono::steady_clock::now());
  int status = 0;
  std::string refusal;
  std::string fault;
  httplib::Request request;
  request.method = "POST";
  request.path = path_;
  request.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  if (const char* key = std::getenv("OPENAI_API_KEY")) {
    request.headers.emplace("Authorization", std::string("Bearer ") + key);
  }
  request.body = body;
  request.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    return true;
  };
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    if (status != 200) {
      refusal.append(data, size);
      return true;
    }
    try {
      const auto now = std::chrono::steady_clock::now();
      parser.push({data, size}, [&](std::string_view event) { stream.event(event, now); });
      return true;
    } catch (const Error& error) {
      fault = error.what();
      return false;
    }
  };
  const httplib::Result result = client.send(request);
  if (!fault.empty()) return {std::nullopt, fault, false};
  if (status != 0 && status != 200) {
    return {std::nullopt, fmt::format("status {}: {}", status, error_text(refusal)), is_temporary(status)};
  }
  // Some servers close the connection right behind the last event, which HTTP takes for an answer cut off.
  if (stream.done() || (result && stream.complete())) return {stream.finish(), {}, false};
  if (stream.started()) return {std::nullopt, "the answer was cut off before its end", true};
  if (status == 200) {
    return {std::nullopt, "status 200, and no event followed (a prompt too long for it? its log may tell)", true};
  }
  return {std::nullopt, "no answer (" + httplib::to_string(result.error()) + ")", true};
}

Json EndpointArm::config() const {
  return {{"endpoint", options_.endpoint},
          {"model", options_.model},
          {"timeout_s", options_.timeout_s},
          {"retries", options_.retries}};
}

}  // namespace qpn8
