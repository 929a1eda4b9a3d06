#pragma once

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace qpn8::test {

/// A server of chat completions on loopback that gives its answers in turn, the last one for ever.
class FakeServer {
 public:
  using Answer = std::function<void(httplib::Response&)>;

  explicit FakeServer(std::vector<Answer> answers) : answers_(std::move(answers)) {
    server_.Post("/v1/chat/completions", [this](const httplib::Request& request, httplib::Response& response) {
      bodies_.push_back(request.body);
      answers_[std::min(bodies_.size(), answers_.size()) - 1](response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~FakeServer() {
    server_.stop();
    thread_.join();
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}/v1/", port_); }
  const std::vector<std::string>& bodies() const { return bodies_; }

 private:
  httplib::Server server_;
  std::vector<Answer> answers_;
  std::vector<std::string> bodies_;
  int port_ = 0;
  std::thread thread_;
};

/// A stream's event with a piece of the answer.
inline std::string delta(const std::string& content) {
  return nlohmann::ordered_json{{"choices", {{{"delta", {{"content", content}}}, {"finish_reason", nullptr}}}}}.dump();
}

/// The event that ends an answer.
inline const std::string kStop = R"({"choices": [{"delta": {}, "finish_reason": "stop"}]})";

/// A stream of these events.
inline FakeServer::Answer events(const std::vector<std::string>& list) {
  std::string body;
  for (const std::string& event : list) body += "data: " + event + "\n\n";
  return [=](httplib::Response& response) { response.set_content(body, "text/event-stream"); };
}

}  // namespace qpn8::test
