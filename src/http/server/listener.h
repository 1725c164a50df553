#pragma once
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/message/stream.h"
#include "http/server/server.h"

namespace foretoken::http {

// One socket that listens. After `start` of its context's thread.
class Listener {
 public:
  // All addresses of the configuration; with port 0 all get the same free one. InvalidArgument says
  // which address cannot be had, and why.
  static Result<std::vector<std::unique_ptr<Listener>>> open_all(const ServerConfig& config,
                                                                 boost::asio::io_context& context);
  // Removes the file of a unix socket, where it is still its own.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Takes connections until `close`: each belongs to the context that `next` names for it.
  void start(std::function<boost::asio::io_context&()> next,
             std::function<void(Stream::Socket)> on_socket);
  void close();

  const std::string& address() const { return address_; }  // "127.0.0.1:8000", "unix:/run/x.sock"
  uint16_t port() const { return port_; }
  int number() const { return number_; }  // as Request::port_number

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  explicit Listener(boost::asio::io_context& context) : acceptor_(context), retry_(context) {}

  // At one port of all addresses.
  static Result<std::vector<std::unique_ptr<Listener>>> open_port(const std::string& host,
                                                                  uint16_t first,
                                                                  boost::asio::io_context& context);
  Status listen_tcp(const Endpoint& endpoint);
  Status listen_unix(const std::string& path, unsigned mode);
  void accept();
  void accept_later();

  Acceptor acceptor_;
  boost::asio::steady_timer retry_;
  std::function<boost::asio::io_context&()> next_;
  std::function<void(Stream::Socket)> on_socket_;
  std::string address_;
  uint16_t port_ = 0;
  int number_ = -1;
  std::string file_;  // of a unix socket
  uint64_t file_id_ = 0;
};

}  // namespace foretoken::http
