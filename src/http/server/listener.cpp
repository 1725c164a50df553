#include "http/server/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace foretoken::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Endpoint = asio::generic::stream_protocol::endpoint;

constexpr std::chrono::milliseconds kAcceptRetry{50};

std::string endpoint_name(const Endpoint& endpoint) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  getnameinfo(endpoint.data(), static_cast<socklen_t>(endpoint.size()), host, sizeof host, port,
              sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  const bool is_v6 = endpoint.protocol().family() == AF_INET6;
  return (is_v6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" + port;
}

uint16_t port_of(const Endpoint& endpoint) {
  if (endpoint.protocol().family() == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(endpoint.data())->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(endpoint.data())->sin_port);
}

Endpoint with_port(Endpoint endpoint, uint16_t port) {
  if (endpoint.protocol().family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(endpoint.data())->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(endpoint.data())->sin_port = htons(port);
  }
  return endpoint;
}

Result<std::vector<Endpoint>> resolve(const std::string& host, uint16_t port) {
  std::string name = host;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return invalid_argument("--host " + host + ": " + gai_strerror(error) +
                            "; give a name or an address of this machine, as 0.0.0.0, without "
                            "http:// and port");
  }
  std::vector<Endpoint> endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const Endpoint endpoint(one->ai_addr, one->ai_addrlen, IPPROTO_TCP);
    // A name that /etc/hosts has twice has its address twice.
    if (std::ranges::find(endpoints, endpoint) == endpoints.end()) endpoints.push_back(endpoint);
  }
  freeaddrinfo(found);
  return endpoints;
}

// A socket file that nobody listens on is removed. Anything else in its place stays.
Status make_room(const std::string& path, const Endpoint& endpoint, asio::io_context& context) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) {
    return invalid_argument("--uds " + path + ": there is a file that is no socket");
  }
  Stream::Socket probe(context);
  error_code ec;
  probe.connect(endpoint, ec);
  if (!ec) return invalid_argument("--uds " + path + ": another server listens there");
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return invalid_argument("--uds " + path + ": " + std::strerror(errno));
  }
  return {};
}

}  // namespace

Listener::~Listener() {
  struct stat info{};
  if (file_.empty() || lstat(file_.c_str(), &info) != 0 || info.st_ino != file_id_) return;
  unlink(file_.c_str());
}

Status Listener::listen_tcp(const Endpoint& endpoint) {
  error_code ec;
  acceptor_.open(endpoint.protocol(), ec);
  if (!ec) acceptor_.set_option(Acceptor::reuse_address(true), ec);
  if (!ec && endpoint.protocol().family() == AF_INET6) {
    // [::] takes IPv4 too; on other addresses the option changes nothing.
    const int off = 0;
    setsockopt(acceptor_.native_handle(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (!ec) acceptor_.bind(endpoint, ec);
  if (!ec) acceptor_.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) {
    const bool in_use = ec == asio::error::address_in_use;
    return invalid_argument("cannot listen on " + endpoint_name(endpoint) + ": " + ec.message() +
                            (in_use ? "; choose another --port, or end what listens there" : ""));
  }
  const Endpoint bound = acceptor_.local_endpoint(ec);
  address_ = endpoint_name(bound);
  port_ = port_of(bound);
  return {};
}

Status Listener::listen_unix(const std::string& path, unsigned mode) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return invalid_argument("--uds " + path + ": longer than the " +
                            std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                            " bytes that the system takes");
  }
  const Endpoint endpoint(asio::local::stream_protocol::endpoint{path});
  FT_RETURN_IF_ERROR(make_room(path, endpoint,
                               static_cast<asio::io_context&>(acceptor_.get_executor().context())));
  error_code ec;
  acceptor_.open(endpoint.protocol(), ec);
  if (!ec) acceptor_.bind(endpoint, ec);
  struct stat info{};
  if (!ec && stat(path.c_str(), &info) == 0) {
    file_ = path;
    file_id_ = info.st_ino;
  }
  // Before anybody can connect.
  if (!ec && chmod(path.c_str(), mode) != 0) ec.assign(errno, boost::system::system_category());
  if (!ec) acceptor_.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) return invalid_argument("--uds " + path + ": " + ec.message());
  address_ = "unix:" + path;
  return {};
}

Result<std::vector<std::unique_ptr<Listener>>> Listener::open_port(const std::string& given,
                                                                   uint16_t first,
                                                                   asio::io_context& context) {
  std::vector<std::unique_ptr<Listener>> listeners;
  const auto add = [&] {
    return listeners.emplace_back(std::unique_ptr<Listener>(new Listener(context))).get();
  };
  const bool everywhere = given.empty() || given == "*";
  if (everywhere) {
    FT_ASSIGN_OR_RETURN(const std::vector<Endpoint> both, resolve("::", first));
    if (add()->listen_tcp(both.front()).ok()) return listeners;
    // No IPv6 here, or the port is taken: the IPv4 address says which.
    listeners.clear();
  }
  const std::string host = everywhere ? "0.0.0.0" : given;
  FT_ASSIGN_OR_RETURN(const std::vector<Endpoint> endpoints, resolve(host, first));
  Status failure;
  for (const Endpoint& endpoint : endpoints) {
    const uint16_t port = listeners.empty() ? first : listeners.front()->port();
    const Status status = add()->listen_tcp(with_port(endpoint, port));
    if (status.ok()) continue;
    // "localhost" names ::1 on machines without IPv6 too: one of several addresses is enough, but
    // an address that somebody else has is an error.
    const bool absent = status.message().find("in use") == std::string::npos;
    listeners.pop_back();
    if (!absent) return status;
    failure = status;
  }
  if (listeners.empty()) return failure;
  return listeners;
}

Result<std::vector<std::unique_ptr<Listener>>> Listener::open_all(const ServerConfig& config,
                                                                  asio::io_context& context) {
  std::vector<std::unique_ptr<Listener>> listeners;
  if (!config.uds.empty()) {
    listeners.emplace_back(new Listener(context));
    FT_RETURN_IF_ERROR(listeners.back()->listen_unix(config.uds, config.uds_mode));
    return listeners;
  }
  for (int number = 0; number < config.num_ports; ++number) {
    const auto port = static_cast<uint16_t>(config.port + number);
    FT_ASSIGN_OR_RETURN(auto more, open_port(config.host, port, context));
    for (auto& listener : more) {
      if (config.num_ports > 1) listener->number_ = number;
      listeners.push_back(std::move(listener));
    }
  }
  return listeners;
}

void Listener::start(std::function<asio::io_context&()> next,
                     std::function<void(Stream::Socket)> on_socket) {
  next_ = std::move(next);
  on_socket_ = std::move(on_socket);
  accept();
}

void Listener::close() {
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
}

void Listener::accept() {
  acceptor_.async_accept(next_(), [this](const error_code& ec, Stream::Socket socket) {
    if (!acceptor_.is_open()) return;
    if (ec && ec != asio::error::connection_aborted) {
      FT_LOG(warn, "http: cannot take a connection: {}", ec.message());
      return accept_later();
    }
    if (!ec) on_socket_(std::move(socket));
    accept();
  });
}

// Out of file descriptors, most likely: the waiting connections stay in the system's queue.
void Listener::accept_later() {
  retry_.expires_after(kAcceptRetry);
  retry_.async_wait([this](const error_code&) {
    if (acceptor_.is_open()) accept();
  });
}

}  // namespace foretoken::http
