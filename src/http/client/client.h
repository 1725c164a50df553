#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "http/client/url.h"
#include "http/message/exchange.h"

namespace foretoken::http {

struct ClientOptions {
  bool verify_tls = true;
  std::chrono::milliseconds connect_timeout{30'000};  // with the TLS handshake
  std::chrono::milliseconds request_timeout{0};       // from send() to the last byte; 0: none
};

struct ClientRequest {
  std::string method = "POST";
  std::string path;  // behind the path of the client's address
  Headers headers;   // Host, Content-Length and Connection are added
  std::string body;
  std::chrono::milliseconds timeout{0};  // in place of the client's request_timeout, unless 0
};

// What is called for one request, on the thread of Client::run(). Each may call send(), call_at()
// and stop().
struct ClientHandlers {
  std::function<void(int status, const Headers& headers)> on_head;
  // Bytes of the body, without chunk headers, as soon as they come.
  std::function<void(std::string_view bytes)> on_body;
  // Once, and last. An error names what broke; Aborted after stop().
  std::function<void(const Status& status)> on_end;
};

// Requests to one server over HTTP/1.1, any number at once, each on a connection of its own that is
// used again afterwards. A request that finds its kept connection closed is sent once more on a new
// one. All functions belong to one thread, the one that calls run().
class Client {
 public:
  // Looks the host up; an unknown one is an error.
  static Result<std::unique_ptr<Client>> create(const Url& url, const ClientOptions& options);
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

  // Connections opened so far.
  size_t num_connections() const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken::http
