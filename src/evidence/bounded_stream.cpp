#include "evidence/bounded_stream.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace qpn8 {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

ExchangeBudget::ExchangeBudget(const HttpLimits& limits)
    : limits_(limits),
      deadline_(Clock::now() + limits.total),
      bytes_left_(limits.header_bytes),
      body_left_(limits.body_bytes) {}

void ExchangeBudget::begin_body() {
  // A chunk of one byte takes six on the connection.
  constexpr std::size_t kFraming = 8;
  in_body_ = true;
  bytes_left_ = limits_.body_bytes * kFraming;
}

bool ExchangeBudget::refuse(std::string failure) {
  broken_ = true;
  if (failure_.empty()) failure_ = std::move(failure);
  return false;
}

bool ExchangeBudget::take(std::size_t bytes) {
  if (bytes > bytes_left_) {
    return refuse(in_body_ ? fmt::format("its answer goes on beyond {} bytes", limits_.body_bytes)
                           : fmt::format("its response headers go on beyond {} bytes", limits_.header_bytes));
  }
  bytes_left_ -= bytes;
  return true;
}

bool ExchangeBudget::take_body(std::size_t bytes) {
  if (bytes > body_left_) return refuse(fmt::format("its answer goes on beyond {} bytes", limits_.body_bytes));
  body_left_ -= bytes;
  return true;
}

bool ExchangeBudget::wait(int socket, short events) {
  const Clock::time_point start = Clock::now();
  const Clock::time_point until = std::min(deadline_, start + limits_.silence);
  while (true) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline_) {
      return refuse(fmt::format("its answer has not ended after {:g} s (request_timeout_s)", seconds(limits_.total)));
    }
    if (now >= until) {
      failure_ = fmt::format("silent for {:g} s (timeout_s)", seconds(limits_.silence));
      return false;
    }
    const auto left = std::chrono::ceil<milliseconds>(until - now).count();
    pollfd waited{socket, events, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

ssize_t BoundedStream::read(char* to, std::size_t size) {
  if (begin_ == end_) {
    const ssize_t filled = fill();
    if (filled <= 0) return filled;
  }
  const std::size_t taken = std::min(size, end_ - begin_);
  if (!budget_->take(taken)) return -1;
  std::copy_n(buffer_.data() + begin_, taken, to);
  begin_ += taken;
  return static_cast<ssize_t>(taken);
}

// A record of TLS may be there in part only: then reading it says so, and the wait goes on.
ssize_t BoundedStream::fill() {
  while (true) {
    const bool pending = session_ != nullptr && SSL_pending(session_) > 0;
    if (!pending && !budget_->wait(socket_, POLLIN)) return -1;
    ssize_t count = 0;
    if (session_ != nullptr) {
      count = SSL_read(session_, buffer_.data(), static_cast<int>(buffer_.size()));
      const int error = count > 0 ? SSL_ERROR_NONE : SSL_get_error(session_, static_cast<int>(count));
      if (error == SSL_ERROR_WANT_READ) continue;
      if (error == SSL_ERROR_ZERO_RETURN) return 0;
    } else {
      count = recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    }
    if (count <= 0) return count;
    begin_ = 0;
    end_ = static_cast<std::size_t>(count);
    return count;
  }
}

ssize_t BoundedStream::write(const char* from, std::size_t size) {
  while (true) {
    if (!budget_->wait(socket_, POLLOUT)) return -1;
    if (session_ != nullptr) {
      constexpr std::size_t kRecord = 16384;
      return SSL_write(session_, from, static_cast<int>(std::min(size, kRecord)));
    }
    const ssize_t count = send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    return count;
  }
}

void BoundedStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void BoundedStream::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace qpn8
