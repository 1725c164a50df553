#include "http/server/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <utility>

#include "base/log.h"
#include "base/thread_limit.h"
#include "http/message/event_loop.h"
#include "http/server/connection.h"
#include "http/server/listener.h"
#include "http/server/server_state.h"
#include "http/server/tls_context.h"

namespace foretoken::http {
namespace {

namespace asio = boost::asio;

// After the last answer clients get this long to take it and close, before they are closed.
constexpr std::chrono::milliseconds kCloseGrace{1000};

void set_options(Stream::Socket& socket) {
  const int on = 1;
  // Both fail harmlessly on unix sockets.
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket.native_handle(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// So many connections beyond the most are read as far as their first request, to answer it in the
// form of its path.
constexpr size_t kMaxSurplus = 256;

// Too many even of those: said without waiting, to whoever can read it.
void turn_away(Stream::Socket socket, const ServerConfig& config, bool tls) {
  if (tls) return;
  const std::string body = config.error_body(503, kTooManyConnections, "");
  const std::string answer =
      make_answer_head({}, 503, "application/json", {{"Retry-After", "1"}}, body.size(), false) +
      body;
  ::send(socket.native_handle(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  boost::system::error_code ignored;
  socket.shutdown(Stream::Socket::shutdown_send, ignored);
}

Status check_server_config(const ServerConfig& config) {
  if (config.num_threads < 1 || config.num_threads > 256) {
    return invalid_argument("the server needs 1 to 256 threads");
  }
  if (config.max_header_bytes < 1024) {
    return invalid_argument("--h11-max-incomplete-event-size must be at least 1024 bytes");
  }
  if (config.max_header_count < 1) {
    return invalid_argument("--h11-max-header-count must be at least 1");
  }
  if (config.num_ports > 1 && (config.port == 0 || !config.uds.empty())) {
    return invalid_argument("a server with " + std::to_string(config.num_ports) +
                            " ports needs the first of them: give --port");
  }
  if (config.num_ports < 1 || config.port + config.num_ports - 1 > UINT16_MAX) {
    return invalid_argument("--port " + std::to_string(config.port) + ": there are not " +
                            std::to_string(config.num_ports) +
                            " ports from it on; give a lower one");
  }
  if (config.max_connections < 1) return invalid_argument("the server needs a connection at least");
  if (!config.root_path.empty() && config.root_path.front() != '/') {
    return invalid_argument("--root-path " + config.root_path + " must begin with /");
  }
  return {};
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerConfig config, Router router, std::shared_ptr<asio::ssl::context> tls)
      : state_(std::make_shared<ServerState>(std::move(config), std::move(router))),
        has_tls_(tls != nullptr),
        tls_(std::move(tls)) {}
  ~Impl() { stop(); }

  Status listen();
  const std::string& address() const { return address_; }
  uint16_t port() const { return port_; }
  Status reload_tls();
  bool drain(std::chrono::milliseconds deadline);
  void stop();
  ServerCounters counters() const {
    return {state_->num_connections(), state_->num_in_flight.load()};
  }

 private:
  void start_loops();
  void add_connection(EventLoop& loop, const std::shared_ptr<const ExchangeHost>& host,
                      Stream::Socket socket, int port_number);
  void close_listeners();
  void notify_connections();
  std::shared_ptr<asio::ssl::context> tls();

  const std::shared_ptr<ServerState> state_;
  const bool has_tls_;
  std::mutex tls_mutex_;
  std::shared_ptr<asio::ssl::context> tls_;
  std::vector<std::shared_ptr<EventLoop>> loops_;
  std::vector<std::shared_ptr<const ExchangeHost>> hosts_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::string address_;
  uint16_t port_ = 0;
  size_t next_loop_ = 0;  // of the first loop's thread
  std::mutex stop_mutex_;
  bool stopped_ = false;
};

Status Server::Impl::listen() {
  for (int i = 0; i < state_->config.num_threads; ++i) {
    loops_.push_back(std::make_shared<EventLoop>());
    auto host = std::make_shared<ExchangeHost>();
    host->post = [loop = loops_.back()](std::function<void()> work) {
      return loop->post(std::move(work));
    };
    host->draining = [state = state_] { return state->draining.load(std::memory_order_relaxed); };
    host->error_body = state_->config.error_body;
    hosts_.push_back(std::move(host));
  }
  FT_ASSIGN_OR_RETURN(listeners_, Listener::open_all(state_->config, loops_.front()->context()));
  port_ = listeners_.front()->port();
  const std::string scheme = has_tls_ ? "https://" : "http://";
  address_ = (state_->config.uds.empty() ? scheme : "") + listeners_.front()->address();
  for (const auto& listener : listeners_) {
    // One after another: the loop of the connection that is accepted next is chosen before it
    // comes.
    auto chosen = std::make_shared<size_t>(0);
    listener->start(
        [this, chosen]() -> asio::io_context& {
          *chosen = next_loop_++ % loops_.size();
          return loops_[*chosen]->context();
        },
        [this, chosen, number = listener->number()](Stream::Socket socket) {
          add_connection(*loops_[*chosen], hosts_[*chosen], std::move(socket), number);
        });
  }
  start_loops();
  return {};
}

void Server::Impl::start_loops() {
  for (size_t i = 0; i < loops_.size(); ++i) loops_[i]->start("ft-http-" + std::to_string(i));
}

void Server::Impl::add_connection(EventLoop& loop, const std::shared_ptr<const ExchangeHost>& host,
                                  Stream::Socket socket, int port_number) {
  const size_t num_open = state_->num_connections();
  const size_t most = state_->config.max_connections;
  if (num_open >= most + kMaxSurplus) {
    return turn_away(std::move(socket), state_->config, has_tls_);
  }
  set_options(socket);
  state_->add_connection(1);
  std::string client = Stream::peer_name(socket);
  auto connection = std::make_shared<Stream>(std::move(socket), tls());
  loop.post([state = state_, &loop, host, connection,
             peer = Connection::Peer{std::move(client), port_number},
             surplus = num_open >= most]() mutable {
    std::make_shared<Connection>(state, loop, host, std::move(*connection), std::move(peer),
                                 surplus)
        ->start();
  });
}

void Server::Impl::close_listeners() {
  std::promise<void> closed;
  const bool posted = loops_.front()->post([&] {
    for (const auto& listener : listeners_) listener->close();
    closed.set_value();
  });
  if (posted) closed.get_future().wait();
}

void Server::Impl::notify_connections() {
  for (const auto& loop : loops_) {
    loop->post([&connections = loop->connections()] {
      for (Connection* connection : connections) connection->notify();
    });
  }
}

std::shared_ptr<asio::ssl::context> Server::Impl::tls() {
  const std::lock_guard lock(tls_mutex_);
  return tls_;
}

Status Server::Impl::reload_tls() {
  FT_ASSIGN_OR_RETURN(auto context, make_tls_context(state_->config.tls));
  const std::lock_guard lock(tls_mutex_);
  tls_ = std::move(context);
  return {};
}

bool Server::Impl::drain(std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  state_->draining = true;
  close_listeners();
  notify_connections();
  const bool all_ended = state_->wait_idle(end);
  state_->wait_closed(std::min(end, std::chrono::steady_clock::now() + kCloseGrace));
  return all_ended;
}

void Server::Impl::stop() {
  const std::lock_guard lock(stop_mutex_);
  if (std::exchange(stopped_, true)) return;
  state_->draining = true;
  state_->stopping = true;
  if (!listeners_.empty()) close_listeners();
  notify_connections();
  // The first loop hands connections to the others, so it ends first.
  for (const auto& loop : loops_) loop->join();
  listeners_.clear();
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(ServerConfig config, std::vector<Route> routes) {
  FT_RETURN_IF_ERROR(check_server_config(config));
  FT_ASSIGN_OR_RETURN(Router router, Router::make(std::move(routes)));
  FT_ASSIGN_OR_RETURN(auto tls, make_tls_context(config.tls));
  auto impl = std::make_unique<Impl>(std::move(config), std::move(router), std::move(tls));
  FT_RETURN_IF_ERROR(start_threads([&] { return impl->listen(); }));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Status Server::probe(const ServerConfig& config) {
  FT_RETURN_IF_ERROR(check_server_config(config));
  FT_RETURN_IF_ERROR(make_tls_context(config.tls).status());
  asio::io_context context;
  return Listener::open_all(config, context).status();
}

std::string Server::address() const { return impl_->address(); }
uint16_t Server::port() const { return impl_->port(); }
Status Server::reload_tls() { return impl_->reload_tls(); }
bool Server::drain(std::chrono::milliseconds deadline) { return impl_->drain(deadline); }
void Server::stop() { impl_->stop(); }
ServerCounters Server::counters() const { return impl_->counters(); }

}  // namespace foretoken::http
