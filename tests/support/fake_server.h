#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace foretoken::test {

struct FakeRequest {
  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// The answer to one request, piece by piece, on the thread of its connection.
class FakeReply {
 public:
  FakeReply(int socket, const std::atomic<bool>& stopping) : socket_(socket), stopping_(stopping) {}

  void raw(std::string_view bytes);
  // A whole answer.
  void json(int status, const std::string& body);
  // 200, an event stream in chunks; then any number of events; then end_stream.
  void begin_stream();
  void event(const std::string& data);
  void chunk(std::string_view bytes);
  void end_stream();
  // Both are cut short when the server ends. Until `holds`, or for two minutes.
  void pause(std::chrono::milliseconds time);
  void wait_until(const std::function<bool()>& holds);
  // The connection ends with this answer.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

 private:
  int socket_;
  const std::atomic<bool>& stopping_;
  bool closed_ = false;
};

// An HTTP/1.1 server on 127.0.0.1 that answers as a test says, a thread for each connection.
class FakeServer {
 public:
  using Handler = std::function<void(const FakeRequest&, FakeReply&)>;

  explicit FakeServer(Handler handler);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<FakeRequest> requests() const;
  size_t num_connections() const;

 private:
  void accept_all();
  void serve(int socket);

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<FakeRequest> requests_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// A port of 127.0.0.1 that nobody listens on.
int closed_port();

// A completion of `num_tokens` chunks "t0 ", "t1 ", ... with `gap` before each, then the usage and
// [DONE].
void stream_completion(FakeReply& reply, int num_tokens, std::chrono::milliseconds gap);

}  // namespace foretoken::test
