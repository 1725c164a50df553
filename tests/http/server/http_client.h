#pragma once
#include <openssl/ssl.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "http/message/exchange.h"

namespace foretoken::http {

// An answer as it came; `status` 0 where none came within two minutes, or the connection ended.
struct Answer {
  int status = 0;
  std::string head;
  std::string body;    // chunks joined
  bool whole = false;  // by its own framing
  std::string header(std::string_view name) const;
};

// A blocking client on a socket of its own that shows every byte. With an SSL_CTX it speaks TLS.
class HttpClient {
 public:
  static HttpClient tcp(uint16_t port, const std::string& host = "127.0.0.1");
  static HttpClient unix_socket(const std::string& path);
  ~HttpClient();
  HttpClient(HttpClient&& other) noexcept;
  HttpClient& operator=(HttpClient&& other) noexcept;

  bool connected() const { return fd_ >= 0; }
  // Before bytes are sent; false where the handshake fails.
  bool start_tls(SSL_CTX* context);

  // False where the connection has ended.
  bool send(std::string_view bytes);
  Answer read_answer(bool head_only = false);
  Answer ask(std::string_view bytes) { return send(bytes) ? read_answer() : Answer{}; }
  // What comes next, at most `limit` bytes; "" at the end.
  std::string read_some(size_t limit = 65536);
  // Whether the other side has ended the connection, after whatever came before.
  bool reaches_end();
  void close();

 private:
  explicit HttpClient(int fd);
  bool read_until(std::string_view mark);
  bool read_bytes(size_t count);

  int fd_ = -1;
  SSL* ssl_ = nullptr;
  std::string buffer_;
};

// "GET /path HTTP/1.1" with Host and further header lines ("Name: value\r\n").
std::string get(const std::string& path, const std::string& headers = "");
std::string post(const std::string& path, const std::string& body, const std::string& headers = "");

}  // namespace foretoken::http
