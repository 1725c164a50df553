#include "http/client/client.h"

#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <list>
#include <set>

namespace foretoken::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kMaxIdle = 4096;

}  // namespace

// Types of coroutine frames and members have a name for the linker.
namespace client_parts {

// A Beast body that hands on its bytes at once.
struct PassingBody {
  using value_type = const std::function<void(std::string_view)>*;
  class reader {
   public:
    template <bool kRequest, class Fields>
    reader(beast::http::header<kRequest, Fields>&, value_type& target) : target_(target) {}
    void init(const boost::optional<uint64_t>&, error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      size_t num_bytes = 0;
      for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers);
           ++it) {
        const asio::const_buffer piece = *it;
        num_bytes += piece.size();
        if (*target_) (*target_)({static_cast<const char*>(piece.data()), piece.size()});
      }
      return num_bytes;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& target_;
  };
};
using Parser = beast::http::response_parser<PassingBody>;

struct Connection {
  explicit Connection(asio::io_context& io) : tcp(io) {}

  beast::tcp_stream tcp;
  std::unique_ptr<asio::ssl::stream<beast::tcp_stream&>> tls;
  bool used = false;
  bool got_bytes = false;  // of the answer that is awaited

  // False when the server has closed it, or sent what nobody asked for.
  bool still_idle() {
    char byte;
    const ssize_t count = ::recv(tcp.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
};

struct Job {
  std::string bytes;  // head and body
  bool head_only = false;
  ClientHandlers handlers;
  std::chrono::milliseconds timeout;  // 0: none
  steady_clock::time_point deadline;
};

}  // namespace client_parts

using client_parts::Connection;
using client_parts::Job;
using client_parts::Parser;

namespace {

std::string request_bytes(const Url& url, const ClientRequest& request) {
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", request.method, url.path,
                                 request.path, url.authority());
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\r\n";
  if (!request.body.empty() || request.method == "POST") {
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  return text + "Connection: keep-alive\r\n\r\n" + request.body;
}

Headers headers_of(const Parser& parser) {
  Headers headers;
  for (const auto& field : parser.get()) {
    headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  return headers;
}

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1e3; }

}  // namespace

struct Client::Impl {
  Impl(const Url& address, const ClientOptions& wanted) : url(address), options(wanted) {}

  asio::awaitable<void> exchange(std::shared_ptr<Job> job);
  asio::awaitable<Status> connect(Connection& connection, const Job& job);
  asio::awaitable<Status> handshake(Connection& connection);
  asio::awaitable<Status> converse(Connection& connection, Job& job, bool* keep);
  asio::awaitable<Status> read_answer(Connection& connection, Job& job, bool* keep);
  asio::awaitable<error_code> write(Connection& connection, const std::string& bytes);
  asio::awaitable<error_code> read_some(Connection& connection, beast::flat_buffer& buffer);
  std::unique_ptr<Connection> take_idle();
  Status broken(const error_code& error, const char* what, const Job& job) const;

  const Url url;
  const ClientOptions options;
  // Connections refer to it, so it is destroyed last.
  asio::io_context io{1};
  asio::ssl::context tls_context{asio::ssl::context::tls_client};
  std::vector<tcp::endpoint> endpoints;
  std::vector<std::unique_ptr<Connection>> idle;
  std::set<Connection*> active;
  std::list<asio::steady_timer> timers;
  size_t num_connections = 0;
  bool stopping = false;
  bool closing = false;  // nobody may be called any more
};

Status Client::Impl::broken(const error_code& error, const char* what, const Job& job) const {
  if (stopping) return aborted("stopped");
  if (error == beast::error::timeout) {
    return internal_error(
        fmt::format("{} {}: no end within {} s", what, url.origin(), seconds(job.timeout)));
  }
  const bool closed =
      error == asio::error::eof || error == asio::error::connection_reset ||
      error == asio::error::broken_pipe || error == beast::http::error::end_of_stream ||
      error == beast::http::error::partial_message || error == asio::ssl::error::stream_truncated;
  const std::string why = closed ? "the server closed the connection" : error.message();
  return internal_error(fmt::format("{} {}: {}", what, url.origin(), why));
}

std::unique_ptr<Connection> Client::Impl::take_idle() {
  while (!idle.empty()) {
    std::unique_ptr<Connection> connection = std::move(idle.back());
    idle.pop_back();
    if (connection->still_idle()) return connection;
  }
  return nullptr;
}

asio::awaitable<Status> Client::Impl::handshake(Connection& connection) {
  connection.tls =
      std::make_unique<asio::ssl::stream<beast::tcp_stream&>>(connection.tcp, tls_context);
  error_code no_address;
  asio::ip::make_address(url.host, no_address);
  if (no_address) SSL_set_tlsext_host_name(connection.tls->native_handle(), url.host.c_str());
  if (options.verify_tls) {
    connection.tls->set_verify_callback(asio::ssl::host_name_verification(url.host));
  }
  error_code error;
  co_await connection.tls->async_handshake(asio::ssl::stream_base::client,
                                           asio::redirect_error(asio::use_awaitable, error));
  if (!error) co_return Status();
  if (stopping) co_return aborted("stopped");
  co_return internal_error("TLS with " + url.origin() + " failed: " + error.message() +
                           "; --insecure accepts any certificate");
}

asio::awaitable<Status> Client::Impl::connect(Connection& connection, const Job& job) {
  const auto limit = std::min(job.deadline, steady_clock::now() + options.connect_timeout);
  error_code error = asio::error::host_not_found;
  for (const tcp::endpoint& endpoint : endpoints) {
    connection.tcp.expires_at(limit);
    co_await connection.tcp.async_connect(endpoint,
                                          asio::redirect_error(asio::use_awaitable, error));
    if (!error || stopping) break;
    error_code ignored;
    connection.tcp.socket().close(ignored);
  }
  if (stopping) co_return aborted("stopped");
  if (error == beast::error::timeout) {
    if (limit == job.deadline) co_return broken(error, "connecting to", job);
    co_return internal_error(fmt::format("cannot connect to {} within {} s", url.origin(),
                                         seconds(options.connect_timeout)));
  }
  if (error) co_return internal_error("cannot connect to " + url.origin() + ": " + error.message());
  ++num_connections;
  connection.tcp.socket().set_option(tcp::no_delay(true), error);
  if (!url.tls) co_return Status();
  Status status = co_await handshake(connection);
  co_return status;
}

asio::awaitable<error_code> Client::Impl::write(Connection& connection, const std::string& bytes) {
  error_code error;
  if (connection.tls) {
    co_await asio::async_write(*connection.tls, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, error));
  } else {
    co_await asio::async_write(connection.tcp, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, error));
  }
  co_return error;
}

asio::awaitable<error_code> Client::Impl::read_some(Connection& connection,
                                                    beast::flat_buffer& buffer) {
  error_code error;
  const asio::mutable_buffer space = buffer.prepare(kReadBytes);
  size_t count = 0;
  if (connection.tls) {
    count = co_await connection.tls->async_read_some(
        space, asio::redirect_error(asio::use_awaitable, error));
  } else {
    count = co_await connection.tcp.async_read_some(
        space, asio::redirect_error(asio::use_awaitable, error));
  }
  buffer.commit(count);
  connection.got_bytes |= count > 0;
  co_return error;
}

asio::awaitable<Status> Client::Impl::read_answer(Connection& connection, Job& job, bool* keep) {
  Parser parser;
  parser.eager(true);
  parser.body_limit(boost::none);
  parser.header_limit(256 << 10);
  parser.skip(job.head_only);
  parser.get().body() = &job.handlers.on_body;
  beast::flat_buffer buffer;
  bool head_told = false;
  while (!parser.is_done()) {
    if (stopping) co_return aborted("stopped");
    const error_code error = co_await read_some(connection, buffer);
    if (stopping) co_return aborted("stopped");
    const bool ended = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
    if (error && !ended) co_return broken(error, "reading from", job);
    error_code parse_error;
    // The head is told before the body's bytes that came with it.
    parser.eager(head_told);
    while (buffer.size() > 0 && !parser.is_done() && !parse_error) {
      buffer.consume(parser.put(buffer.data(), parse_error));
      if (parser.is_header_done() && !head_told) {
        head_told = true;
        parser.eager(true);
        if (job.handlers.on_head) {
          job.handlers.on_head(static_cast<int>(parser.get().result_int()), headers_of(parser));
        }
      }
    }
    if (parse_error == beast::http::error::need_more) parse_error = {};
    // Beast takes an end before the first byte for a complete message.
    if (ended && !parser.got_some()) break;
    if (!parse_error && ended && !parser.is_done()) parser.put_eof(parse_error);
    if (parse_error) co_return broken(parse_error, "reading from", job);
    if (ended) break;
  }
  if (!parser.is_done()) co_return broken(asio::error::eof, "reading from", job);
  *keep = parser.keep_alive() && buffer.size() == 0;
  co_return Status();
}

asio::awaitable<Status> Client::Impl::converse(Connection& connection, Job& job, bool* keep) {
  if (stopping) co_return aborted("stopped");
  connection.tcp.expires_at(job.deadline);
  connection.got_bytes = false;
  const error_code error = co_await write(connection, job.bytes);
  if (error) co_return broken(error, "sending to", job);
  Status status = co_await read_answer(connection, job, keep);
  co_return status;
}

asio::awaitable<void> Client::Impl::exchange(std::shared_ptr<Job> job) {
  Status status;
  for (bool again = true; again;) {
    again = false;
    std::unique_ptr<Connection> connection = take_idle();
    const bool fresh = connection == nullptr;
    if (fresh) connection = std::make_unique<Connection>(io);
    active.insert(connection.get());
    status = stopping ? aborted("stopped") : Status();
    if (fresh && status.ok()) status = co_await connect(*connection, *job);
    bool keep = false;
    if (status.ok()) status = co_await converse(*connection, *job, &keep);
    active.erase(connection.get());
    again = !status.ok() && !fresh && !connection->got_bytes && !stopping &&
            steady_clock::now() < job->deadline;
    if (status.ok() && keep && idle.size() < kMaxIdle) {
      connection->tcp.expires_never();
      idle.push_back(std::move(connection));
    }
  }
  if (job->handlers.on_end && !closing) job->handlers.on_end(status);
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Client::~Client() {
  impl_->closing = true;
  stop();
  run();
}

Result<std::unique_ptr<Client>> Client::create(const Url& url, const ClientOptions& options) {
  auto impl = std::make_unique<Impl>(url, options);
  tcp::resolver resolver(impl->io);
  error_code error;
  const auto found = resolver.resolve(url.host, url.port, error);
  for (const auto& entry : found) impl->endpoints.push_back(entry.endpoint());
  if (error || impl->endpoints.empty()) {
    return not_found("the host '" + url.host + "' is not known: " + error.message());
  }
  if (url.tls && options.verify_tls) {
    impl->tls_context.set_default_verify_paths(error);
    impl->tls_context.set_verify_mode(asio::ssl::verify_peer, error);
    if (error) return internal_error("TLS cannot start: " + error.message());
  }
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

void Client::send(ClientRequest request, ClientHandlers handlers) {
  auto job = std::make_shared<Job>();
  job->bytes = request_bytes(impl_->url, request);
  job->head_only = request.method == "HEAD";
  job->handlers = std::move(handlers);
  job->timeout = request.timeout.count() > 0 ? request.timeout : impl_->options.request_timeout;
  job->deadline = job->timeout.count() > 0 ? steady_clock::now() + job->timeout
                                           : steady_clock::time_point::max();
  asio::co_spawn(impl_->io, impl_->exchange(std::move(job)), [](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
  });
}

void Client::call_at(std::chrono::steady_clock::time_point time, std::function<void()> work) {
  std::list<asio::steady_timer>& timers = impl_->timers;
  const auto timer = timers.emplace(timers.end(), impl_->io, time);
  timer->async_wait([this, timer, work = std::move(work)](const error_code& error) {
    impl_->timers.erase(timer);
    if (!error && !impl_->stopping) work();
  });
}

void Client::run() {
  impl_->io.restart();
  impl_->io.run();
  impl_->stopping = false;
}

void Client::stop() {
  impl_->stopping = true;
  impl_->idle.clear();
  for (Connection* connection : impl_->active) connection->tcp.cancel();
  for (asio::steady_timer& timer : impl_->timers) timer.cancel();
}

size_t Client::num_connections() const { return impl_->num_connections; }

}  // namespace foretoken::http
