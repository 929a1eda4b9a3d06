#include "evidence/http_exchange.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <charconv>

#include "evidence/bounded_stream.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// A client whose connection is a BoundedStream. Base is the library's client, with or without TLS.
template <class Base>
class BoundedClient : public Base {
 public:
  BoundedClient(const HttpTarget& target, const HttpLimits& limits, ExchangeBudget& budget)
      : Base(target.host, target.port), budget_(&budget) {
    const auto patience = std::min(limits.silence, limits.total);
    this->set_connection_timeout(patience);
    this->set_read_timeout(patience);
    this->set_write_timeout(patience);
    this->set_tcp_nodelay(true);
  }

 private:
  bool process_socket(const typename Base::Socket& socket,
                      std::function<bool(httplib::Stream& stream)> callback) override {
    BoundedStream stream(socket.sock, socket.ssl, *budget_);
    return callback(stream);
  }

  ExchangeBudget* budget_;
};

HttpOutcome outcome_of(const httplib::Result& result, const ExchangeBudget& budget, int status, bool stopped) {
  using End = HttpOutcome::End;
  if (budget.is_broken()) return {End::broke_limit, status, budget.failure()};
  if (stopped) return {End::stopped, status, {}};
  if (result) return {End::complete, status, {}};
  return {End::failed, status, budget.failure().empty() ? httplib::to_string(result.error()) : budget.failure()};
}

}  // namespace

HttpTarget HttpTarget::parse(const std::string& url) {
  const auto refuse = [&] {
    throw Error(Error::bad_argument, fmt::format("endpoint={}: expected http://host:port/v1", url));
  };
  HttpTarget target;
  target.tls = url.starts_with("https://");
  if (!target.tls && !url.starts_with("http://")) refuse();
  const std::size_t begin = url.find("://") + 3;
  const std::size_t path = std::min(url.find('/', begin), url.size());
  const std::string authority = url.substr(begin, path - begin);
  target.path = url.substr(path);
  target.port = target.tls ? 443 : 80;

  const bool bracketed = authority.starts_with('[');
  const std::size_t host_end = bracketed ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (host_end == std::string::npos) refuse();
  target.host = bracketed ? authority.substr(1, host_end - 1) : authority.substr(0, host_end);
  const std::string rest = authority.substr(host_end + (bracketed ? 1 : 0));
  if (!rest.empty()) {
    const char* last = rest.data() + rest.size();
    const auto [end, error] = std::from_chars(rest.data() + 1, last, target.port);
    if (rest.front() != ':' || error != std::errc() || end != last) refuse();
  }
  if (target.host.empty() || target.port < 1 || target.port > 65535) refuse();
  return target;
}

HttpOutcome post_json(const HttpTarget& target, const std::vector<std::pair<std::string, std::string>>& headers,
                      const std::string& body, const HttpLimits& limits, const HttpBodySink& sink) {
  ExchangeBudget budget(limits);
  int status = 0;
  bool stopped = false;
  httplib::Request request;
  request.method = "POST";
  request.path = target.path;
  request.headers = {{"Content-Type", "application/json"}};
  for (const auto& [name, value] : headers) request.headers.emplace(name, value);
  request.body = body;
  request.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    budget.begin_body();
    return true;
  };
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    if (!budget.take_body(size)) return false;
    stopped = !sink(status, {data, size});
    return !stopped;
  };
  const auto exchange = [&](auto& client) {
    const httplib::Result result = client.send(request);
    return outcome_of(result, budget, status, stopped);
  };
  if (target.tls) {
    BoundedClient<httplib::SSLClient> client(target, limits, budget);
    return exchange(client);
  }
  BoundedClient<httplib::ClientImpl> client(target, limits, budget);
  return exchange(client);
}

}  // namespace qpn8
