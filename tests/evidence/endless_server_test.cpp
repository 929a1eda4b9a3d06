// Servers that never end an answer, each in a way of its own.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "evidence/endpoint_arm.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using test::expect_error;

constexpr std::string_view kHeaders = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

/// A server that answers every request with a start and then one text again and again, for as long as it is read.
class EndlessServer {
 public:
  EndlessServer(std::string start, std::string repeated, std::chrono::milliseconds pause = {})
      : start_(std::move(start)), repeated_(std::move(repeated)), pause_(pause) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0) return;
    listen(listener_, 4);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~EndlessServer() {
    shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(listener_);
  }
  EndlessServer(const EndlessServer&) = delete;
  EndlessServer& operator=(const EndlessServer&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}/v1", port_); }

  /// Asks one question, which has to end in the server's fault at the first attempt.
  void expect_fault(const std::string& what, int request_timeout_s = 60) const {
    EndpointArm arm(
        {.endpoint = url(), .model = "m", .timeout_s = 20, .retries = 3, .request_timeout_s = request_timeout_s},
        {.max_tokens = 8}, std::chrono::milliseconds(1));
    expect_error(
        Error::bad_argument,
        [&] {
          arm.generate(std::vector<ChatMessage>{{"user", "?"}}, 0);
        },
        "endpoint=" + url(), what, "(attempt 1)");
  }

 private:
  void serve() {
    while (true) {
      const int peer = accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      std::array<char, 4096> request{};
      bool open = recv(peer, request.data(), request.size(), 0) > 0 && send_all(peer, start_);
      while (open) {
        std::this_thread::sleep_for(pause_);
        open = send_all(peer, repeated_);
      }
      close(peer);
    }
  }

  static bool send_all(int peer, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = send(peer, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  std::string start_;
  std::string repeated_;
  std::chrono::milliseconds pause_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

std::string answer(const std::string& text) { return std::string(kHeaders) + "\r\n" + text; }

TEST(EndlessServer, OfHeadersIsRefused) {
  EndlessServer("HTTP/1.1 200 OK\r\n", "X-More: 1\r\n").expect_fault("headers go on beyond 65536 bytes");
  EndlessServer("HTTP/1.1 200 OK\r\nX-Long: ", std::string(1000, 'x')).expect_fault("headers go on beyond 65536 bytes");
  EndlessServer("", "HTTP/1.1 100 Continue\r\n\r\n").expect_fault("headers go on beyond 65536 bytes");
}

TEST(EndlessServer, OfOneLineIsRefused) {
  EndlessServer(answer("data: "), std::string(1000, 'x')).expect_fault("a line of its stream goes on beyond 1048576");
  EndlessServer(answer(": "), std::string(1000, 'x')).expect_fault("a line of its stream goes on beyond 1048576");
}

TEST(EndlessServer, OfOneEventIsRefused) {
  EndlessServer(answer(""), "data: " + std::string(10'000, 'x') + "\n")
      .expect_fault("an event of its stream goes on beyond 1048576 bytes");
}

TEST(EndlessServer, OfChunkFramesIsRefused) {
  const std::string chunked = std::string(kHeaders) + "Transfer-Encoding: chunked\r\n\r\n";
  EndlessServer(chunked + "5", std::string(4096, '0')).expect_fault("its answer goes on beyond");
}

TEST(EndlessServer, OfEmptyEventsIsRefused) {
  const std::string events = "data: {\"choices\": []}\n\n";
  std::string many;
  for (int i = 0; i < 1000; ++i) many += events;
  EndlessServer(answer(""), many).expect_fault("its answer goes on beyond 1081344 bytes");
}

TEST(EndlessServer, OfCommentsIsRefusedWhenItsTimeIsOver) {
  EndlessServer(answer(""), ": still here\n\n", std::chrono::milliseconds(50))
      .expect_fault("its answer has not ended after 1 s (request_timeout_s)", 1);
}

TEST(EndlessServer, OfHeadersThatDripIsRefusedWhenItsTimeIsOver) {
  EndlessServer("HTTP/1.1 200 OK\r\nX-Slow: ", "x", std::chrono::milliseconds(50))
      .expect_fault("its answer has not ended after 1 s (request_timeout_s)", 1);
}

TEST(EndlessServer, OfARefusalIsReadNoFurtherThanItSays) {
  EndlessServer("HTTP/1.1 404 Not Found\r\n\r\n", std::string(1000, 'n')).expect_fault("status 404: nnn");
}

}  // namespace
}  // namespace qpn8
