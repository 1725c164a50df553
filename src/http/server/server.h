#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/message/exchange.h"
#include "http/server/api_keys.h"

namespace foretoken::http {

// Files in PEM format; without a certificate the server speaks plain HTTP.
struct TlsConfig {
  std::string certfile;          // the server's certificate and its chain
  std::string keyfile;           // "": the key is in `certfile`
  std::string keyfile_password;  // "": the key is not encrypted
  std::string ca_certs;          // who signs the clients' certificates
  int cert_reqs = 0;             // a client's certificate: 0 not asked for, 1 optional, 2 required
};

// What pages of other origins may do. "*" stands for all; without origins no CORS header is sent.
struct CorsConfig {
  std::vector<std::string> allowed_origins = {"*"};
  std::vector<std::string> allowed_methods = {"*"};
  std::vector<std::string> allowed_headers = {"*"};
  bool allow_credentials = false;
};

struct Timeouts {
  // From the start of a connection, with the TLS handshake, to the first byte of a request.
  std::chrono::milliseconds connect{30000};
  // From the first byte of a request to the end of its headers.
  std::chrono::milliseconds header{30000};
  // For each further KiB of a body.
  std::chrono::milliseconds body{30000};
  // Between two requests of a connection.
  std::chrono::milliseconds keep_alive{75000};
  // Without a byte that the client's system took while an answer waits.
  std::chrono::milliseconds write{60000};
  // From the start of a drain to the end of requests whose bytes have begun to come; then 503.
  std::chrono::milliseconds drain{2000};
  // From the last answer until the client has closed its side.
  std::chrono::milliseconds linger{1000};
  // The same where the client may still be sending what nobody will read.
  std::chrono::milliseconds linger_unread{5000};
};

// One request that was answered, or whose client went (status 499).
struct AccessRecord {
  std::string client;
  std::string id;
  std::string method;  // "" where the request could not be read
  std::string target;  // as the client wrote it
  // Of the route that has the path, whoever answered ("/v1/models/{id...}"); "" where none has it.
  std::string pattern;
  int status = 0;
  uint64_t num_bytes = 0;  // of the answer, with its head
  std::chrono::nanoseconds duration{0};
};

struct ServerConfig {
  // A name or address; "": all addresses, IPv6 and IPv4. A name listens on all of its addresses.
  std::string host;
  uint16_t port = 8000;  // 0: any free one
  int num_ports = 1;     // the server listens at `port` and those that follow it, which 0 has not
  // A unix socket instead of host and port. A file left by a dead server is replaced.
  std::string uds;
  unsigned uds_mode = 0666;
  TlsConfig tls;
  int num_threads = 2;    // event loops
  std::string root_path;  // a prefix that a proxy may leave on the path: "/llm"
  CorsConfig cors;
  ApiKeys api_keys;  // for the routes that need one

  size_t max_body_bytes = size_t{64} << 20;
  size_t max_header_bytes = size_t{64}
                            << 10;  // request line and headers (--h11-max-incomplete-event-size)
  size_t max_header_count = 256;    // (--h11-max-header-count)
  size_t max_connections = 8192;    // requests of further ones are answered 503
  Timeouts timeouts;

  bool request_id_headers = false;        // X-Request-Id in every answer
  std::string server_name = "foretoken";  // header Server; "": none
  // Both on a thread of the server, several at a time: they must not wait.
  // The body (application/json) of an error that the server itself answers; `path` as in Request,
  // "" where it is not known.
  std::function<std::string(int status, const std::string& message, const std::string& path)>
      error_body;
  std::function<void(const AccessRecord&)> access_log;
};

struct ServerCounters {
  size_t open_connections = 0;
  size_t requests_in_flight = 0;  // given to a handler, not yet answered to the last byte
};

// An HTTP/1.1 server on threads of its own. Its functions may be called from any thread but those
// of the server, on which handlers run.
//
// The server itself answers: 400 and 505 (not HTTP), 401, 404, 405, 408 (too slow), 413, 414, 415
// (a body packed in another way than gzip and deflate), 417, 426 (WebSockets), 431, 500 (a handler
// that dropped its exchange or threw), 501 (an unknown transfer encoding), 503 (too many
// connections), OPTIONS and CORS preflights. HEAD goes to the route of GET.
class Server {
 public:
  // Listens when it returns. InvalidArgument names the option and what is wrong with it: an address
  // in use, a certificate that cannot be read, two routes that are one.
  static Result<std::unique_ptr<Server>> start(ServerConfig config, std::vector<Route> routes);
  // Whether `start` would find its addresses free and its certificates in order, for a caller that
  // loads for minutes before it starts one.
  static Status probe(const ServerConfig& config);
  // stop()
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "http://127.0.0.1:8000", "https://[::]:8000", "unix:/run/foretoken.sock"; of the first address.
  std::string address() const;
  uint16_t port() const;  // 0 for a unix socket

  // Reads the TLS files again, for connections that come from now on; without TLS nothing. An error
  // leaves what there is.
  Status reload_tls();

  // Takes no new connection, closes idle ones, lets requests that have begun end (their answers say
  // "Connection: close") and waits for that, at most `deadline`. True when all have ended.
  bool drain(std::chrono::milliseconds deadline);
  // Closes everything; exchanges that still run are gone (`when_gone`). Waits for the threads.
  // Exchanges outlive the server; what is posted on them afterwards is dropped.
  void stop();

  ServerCounters counters() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken::http
