#include "http/message/stream.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace foretoken::http {

using boost::system::error_code;

struct Stream::Tls {
  Tls(Socket socket, std::shared_ptr<boost::asio::ssl::context> shared)
      : context(std::move(shared)), stream(std::move(socket), *context) {}
  const std::shared_ptr<boost::asio::ssl::context> context;
  boost::asio::ssl::stream<Socket> stream;
};

Stream::Stream(Socket socket, std::shared_ptr<boost::asio::ssl::context> tls) {
  if (tls != nullptr) {
    tls_ = std::make_unique<Tls>(std::move(socket), std::move(tls));
  } else {
    plain_ = std::make_unique<Socket>(std::move(socket));
  }
}

Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;

Stream::Socket& Stream::socket() { return tls_ ? tls_->stream.next_layer() : *plain_; }

boost::asio::any_io_executor Stream::executor() { return socket().get_executor(); }

void Stream::handshake(Handler handler) {
  tls_->stream.async_handshake(
      boost::asio::ssl::stream_base::server,
      [handler = std::move(handler)](const error_code& ec) { handler(ec, 0); });
}

void Stream::read_some(boost::asio::mutable_buffer into, Handler handler) {
  if (tls_) {
    tls_->stream.async_read_some(into, std::move(handler));
  } else {
    plain_->async_read_some(into, std::move(handler));
  }
}

void Stream::write_some(const std::vector<boost::asio::const_buffer>& from, Handler handler) {
  if (tls_) {
    tls_->stream.async_write_some(from, std::move(handler));
  } else {
    plain_->async_write_some(from, std::move(handler));
  }
}

void Stream::finish_sending(Handler handler) {
  if (tls_) {
    tls_->stream.async_shutdown(
        [handler = std::move(handler)](const error_code& ec) { handler(ec, 0); });
    return;
  }
  error_code ec;
  plain_->shutdown(Socket::shutdown_send, ec);
  handler(ec, 0);
}

void Stream::close() {
  error_code ignored;
  socket().close(ignored);
}

size_t Stream::num_unacknowledged() {
  int num_bytes = 0;
  if (!socket().is_open() || ioctl(socket().native_handle(), SIOCOUTQ, &num_bytes) != 0) return 0;
  return num_bytes > 0 ? static_cast<size_t>(num_bytes) : 0;
}

bool Stream::peer_closed() {
  if (!socket().is_open()) return true;
  pollfd poll_fd{socket().native_handle(), POLLRDHUP, 0};
  return ::poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool Stream::peer_gone() {
  if (!socket().is_open()) return true;
  pollfd poll_fd{socket().native_handle(), 0, 0};
  return ::poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLHUP | POLLERR)) != 0;
}

void Stream::watch_peer() {
  const int seconds = 5;
  // Both fail harmlessly on unix sockets.
  setsockopt(socket().native_handle(), IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  setsockopt(socket().native_handle(), IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
}

bool Stream::is_end(const error_code& ec) {
  return ec == boost::asio::error::eof || ec == boost::asio::ssl::error::stream_truncated;
}

std::string Stream::peer_name(const Socket& socket) {
  error_code ec;
  const auto endpoint = socket.remote_endpoint(ec);
  if (ec) return "";
  char text[INET6_ADDRSTRLEN] = "";
  const int family = endpoint.protocol().family();
  if (family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(endpoint.data());
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(address->sin_port));
  }
  if (family != AF_INET6) return "unix";
  const auto* address = reinterpret_cast<const sockaddr_in6*>(endpoint.data());
  const std::string port = ":" + std::to_string(ntohs(address->sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&address->sin6_addr)) {
    inet_ntop(AF_INET, &address->sin6_addr.s6_addr[12], text, sizeof text);
    return text + port;
  }
  inet_ntop(AF_INET6, &address->sin6_addr, text, sizeof text);
  return "[" + std::string(text) + "]" + port;
}

}  // namespace foretoken::http
