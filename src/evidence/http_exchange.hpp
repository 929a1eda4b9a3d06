#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qpn8 {

/// Where a request goes.
struct HttpTarget {
  bool tls = false;
  std::string host;  ///< a name or an address, IPv6 without brackets
  int port = 0;
  std::string path;  ///< "/v1/chat/completions"

  /// From "http://host:port/path" or the same with https. Error::bad_argument "endpoint=URL: expected ...".
  static HttpTarget parse(const std::string& url);
};

/// What an answer may cost before it is a fault of the server: a peer that never ends takes neither the time nor the
/// memory of who asked it.
struct HttpLimits {
  std::chrono::milliseconds silence{};  ///< to connect, and between two bytes
  std::chrono::milliseconds total{};    ///< from the request to the answer's last byte
  std::size_t header_bytes = std::size_t{64} << 10;
  std::size_t body_bytes = std::size_t{64} << 20;
};

/// How an exchange ended.
struct HttpOutcome {
  enum class End : std::uint8_t {
    complete,  ///< the answer came to the end that HTTP says it has
    stopped,   ///< by who asked
    failed,    ///< no connection, or one that broke or fell silent: may pass
    broke_limit,
  };
  End end = End::failed;
  int status = 0;       ///< of the answer; 0 if none began
  std::string failure;  ///< what went wrong, for a message
};

/// Receives the body as it comes; false stops the exchange.
using HttpBodySink = std::function<bool(int status, std::string_view piece)>;

/// Posts JSON and hands the answer's body on, in pieces cut anywhere. Redirections are not followed. Throws nothing for
/// what a server does; what the sink throws must not pass through it.
HttpOutcome post_json(const HttpTarget& target, const std::vector<std::pair<std::string, std::string>>& headers,
                      const std::string& body, const HttpLimits& limits, const HttpBodySink& sink);

}  // namespace qpn8
