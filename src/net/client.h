#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/headers.h"
#include "net/url.h"

namespace foretoken::net {

struct ClientOptions {
  bool verify_tls = true;
  bool uses_proxies = false;  // those of the environment: https_proxy, no_proxy, ...
  bool only_https = false;    // addresses without TLS are refused
  bool only_http1 = true;     // else HTTP/2 where the server offers it
  std::string ca_file;        // trusted certificates; empty: $SSL_CERT_FILE, or the system's
  // The end of the sentence about a certificate that is not trusted.
  std::string certificate_remedy = "--insecure accepts any certificate";
  std::chrono::milliseconds connect_timeout{30'000};  // with the TLS handshake
  std::chrono::milliseconds request_timeout{0};       // from send() to the last byte; 0: none
  long buffer_bytes = 64 << 10;                       // received at once
};

struct ClientRequest {
  std::string method = "POST";
  std::string path;  // behind the path of the client's address; without one a whole address
  Headers headers;   // Host and Content-Length are added
  std::string body;
  std::chrono::milliseconds timeout{0};  // in place of the client's request_timeout, unless 0
};

// What is called for one request, on the thread of Client::run(). Each may call send(), call_at()
// and stop(); on_head and on_body throw nothing.
struct ClientHandlers {
  std::function<void(int status, const Headers& headers)> on_head;
  // Bytes of the body, without chunk headers, as soon as they come.
  std::function<void(std::string_view bytes)> on_body;
  // Once, and last. InvalidArgument: asking again is no use; Aborted: after stop(); any other error
  // is of the network or of the server, and names what broke.
  std::function<void(const Status& status)> on_end;
};

// Requests over HTTP, any number at once, each on a connection of its own that is used again
// afterwards. A request that finds its kept connection closed is sent once more on a new one.
// Redirects are answers like others. All functions belong to one thread, the one that calls run().
class Client {
 public:
  // To one server, whose host is looked up; an unknown one is an error.
  static Result<std::unique_ptr<Client>> create(const Url& url, const ClientOptions& options);
  // To any; hosts are looked up by their requests.
  explicit Client(const ClientOptions& options);
  // Drops what is under way, without calling anybody.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(ClientRequest request, ClientHandlers handlers);
  // Runs `work` at that time, or at once when it has passed.
  void call_at(std::chrono::steady_clock::time_point time, std::function<void()> work);

  // Until no request and no call_at() is left. May be called again.
  void run();
  // Ends all requests with Aborted and drops all waiting calls.
  void stop();

  // Connections opened so far, by requests that have ended.
  size_t num_connections() const;

 private:
  struct Impl;

  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken::net
