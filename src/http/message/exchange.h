#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// A request that came whole.
struct Request {
  std::string method;  // "GET"
  std::string path;    // decoded, without the query: "/v1/models"
  Headers query;       // decoded, in order
  Headers headers;     // in order, as the client wrote them
  std::string body;
  std::string id;        // X-Request-Id of the client, or one made here
  std::string client;    // its address, for logs
  int port_number = -1;  // of the server's ports the one that it came to, from 0; -1: there is one
  std::chrono::steady_clock::time_point received;
  // What the pattern of its route left open ("/v1/responses/{id}"), in order.
  std::vector<std::string> path_values;

  // The value of a header, its name in any case, or "".
  std::string_view header(std::string_view name) const;
  // The value of a query parameter, or "".
  std::string_view query_value(std::string_view name) const;
};

// One request and the answer to it: the OutputSink of the engine's texts. Every function may be
// called from any thread and never waits; calls after the end, or after the client has gone, do
// nothing. An exchange that is dropped without an answer is answered with status 500.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;

  // The whole answer.
  virtual void respond(int status, const std::string& content_type, std::string body,
                       Headers headers = {}) = 0;

  // An answer in pieces: begin once, write any number of times, end once. Pieces are sent in order,
  // several in one packet where the network is slower than they come.
  virtual void begin(int status, const std::string& content_type, Headers headers = {}) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end() = 0;

  // Bytes written that the system has not taken yet.
  virtual size_t num_queued_bytes() const = 0;
  // Runs `work` on the thread of this connection, in order with other work of it, also when the
  // client has gone.
  virtual void post(std::function<void()> work) = 0;
  // Runs `work` on the thread of this connection as soon as nothing is queued; once.
  virtual void when_sent(std::function<void()> work) = 0;
  // Runs `work` on the thread of this connection when the client goes before the end, at once where
  // it has gone already; not run after the end.
  virtual void when_gone(std::function<void()> work) = 0;
  virtual bool gone() const = 0;
};

// Called on the thread of the connection, which serves others too: it must not wait, and what takes
// long (templates, tokenizers, big JSON) goes to a pool of its own.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

// One line of the server's table.
struct Route {
  std::string method;
  std::string pattern;  // "/v1/responses/{id}"
  Handler handler;
  bool needs_key = true;      // where API keys are configured
  size_t max_body_bytes = 0;  // 0: the server's limit
  // Of a route that only says what to use instead: that, also for paths with something before it.
  std::string instead = {};
};

}  // namespace foretoken::http
