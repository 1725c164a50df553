#pragma once
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace foretoken::http {

// A connected socket of any family, with or without TLS. One read and one write may run at a time.
// Of its loop's thread; handlers run there.
class Stream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Handler = std::function<void(const boost::system::error_code&, size_t num_bytes)>;

  // `tls`: null for plain bytes.
  Stream(Socket socket, std::shared_ptr<boost::asio::ssl::context> tls);
  ~Stream();
  Stream(Stream&&) noexcept;

  bool is_tls() const { return tls_ != nullptr; }
  boost::asio::any_io_executor executor();
  // TLS only.
  void handshake(Handler handler);
  void read_some(boost::asio::mutable_buffer into, Handler handler);
  void write_some(const std::vector<boost::asio::const_buffer>& from, Handler handler);
  // Nothing more will be sent; the other side sees the end after what was sent. With TLS the
  // handler runs when the other side has answered, else at once.
  void finish_sending(Handler handler);
  void close();

  // Bytes that the other side's system has not taken (SIOCOUTQ).
  size_t num_unacknowledged();
  // The other side has closed what it sends, seen without reading.
  bool peer_closed();
  // The other side takes nothing any more: it has reset the connection.
  bool peer_gone();
  // Has the system ask every few seconds whether the other side is there.
  void watch_peer();
  // Of a read: the other side has ended what it sends, with TLS's farewell or without.
  static bool is_end(const boost::system::error_code& ec);
  // "127.0.0.1:4711", "[::1]:4711", "unix"
  static std::string peer_name(const Socket& socket);

 private:
  struct Tls;
  Socket& socket();

  std::unique_ptr<Socket> plain_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace foretoken::http
