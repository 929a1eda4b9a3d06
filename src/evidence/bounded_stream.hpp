#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include "evidence/http_exchange.hpp"

namespace qpn8 {

/// The time and the bytes that one exchange has left, and what it ran out of.
class ExchangeBudget {
 public:
  explicit ExchangeBudget(const HttpLimits& limits);

  /// From here on bytes count as those of the body. Chunks have frames of their own, which cost the peer more than us.
  void begin_body();

  /// Counts bytes from the connection; false if they are too many.
  bool take(std::size_t bytes);

  /// Counts bytes of the body as they are handed on, which compression makes more than the connection carried.
  bool take_body(std::size_t bytes);

  /// Waits for the connection to be ready for `events` of poll(2); false where it stays silent or the time is over.
  bool wait(int socket, short events);

  bool is_broken() const { return broken_; }
  const std::string& failure() const { return failure_; }

 private:
  bool refuse(std::string failure);

  HttpLimits limits_;
  std::chrono::steady_clock::time_point deadline_;
  std::size_t bytes_left_;
  std::size_t body_left_;
  bool in_body_ = false;
  bool broken_ = false;
  std::string failure_;
};

/// A connection as the HTTP library reads and writes it, within a budget. Owns neither the socket nor the session.
class BoundedStream : public httplib::Stream {
 public:
  /// `session` is that of TLS, or none.
  BoundedStream(int socket, SSL* session, ExchangeBudget& budget)
      : socket_(socket), session_(session), budget_(&budget) {}

  bool is_readable() const override { return begin_ < end_; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return socket_; }

 private:
  ssize_t fill();

  int socket_;
  SSL* session_;
  ExchangeBudget* budget_;
  // The library reads headers byte by byte.
  std::array<char, 16384> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace qpn8
