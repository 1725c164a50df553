#include "support/fake_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "support/gate.h"

namespace foretoken::test {
namespace {

int listen_on_any_port(int* port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(listen(listener, 1024), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  *port = ntohs(address.sin_port);
  return listener;
}

// Takes one request out of the socket; `rest` keeps what came behind it. False at the end.
bool read_request(int socket, std::string* rest, FakeRequest* request) {
  const auto more = [&] {
    char buffer[16384];
    const ssize_t count = recv(socket, buffer, sizeof(buffer), 0);
    if (count > 0) rest->append(buffer, static_cast<size_t>(count));
    return count > 0;
  };
  while (rest->find("\r\n\r\n") == std::string::npos) {
    if (!more()) return false;
  }
  const size_t end = rest->find("\r\n\r\n");
  std::istringstream head(rest->substr(0, end));
  head >> request->method >> request->path;
  std::string line;
  std::getline(head, line);
  while (std::getline(head, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    request->headers[name] = line.substr(colon + 2);
  }
  const auto length = request->headers.find("content-length");
  const size_t size = length == request->headers.end() ? 0 : std::stoul(length->second);
  while (rest->size() < end + 4 + size) {
    if (!more()) return false;
  }
  request->body = rest->substr(end + 4, size);
  rest->erase(0, end + 4 + size);
  return true;
}

}  // namespace

void FakeReply::raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void FakeReply::json(int status, const std::string& body) {
  raw("HTTP/1.1 " + std::to_string(status) +
      " Status\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
}

void FakeReply::begin_stream() {
  raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
}

void FakeReply::event(const std::string& data) { chunk("data: " + data + "\n\n"); }

void FakeReply::chunk(std::string_view bytes) {
  std::ostringstream text;
  text << std::hex << bytes.size() << "\r\n" << bytes << "\r\n";
  raw(text.str());
}

void FakeReply::end_stream() { raw("0\r\n\r\n"); }

void FakeReply::pause(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!stopping_.load() && std::chrono::steady_clock::now() < end) {
    const auto left = end - std::chrono::steady_clock::now();
    std::this_thread::sleep_for(
        std::min<std::chrono::steady_clock::duration>(left, std::chrono::milliseconds(20)));
  }
}

void FakeReply::wait_until(const std::function<bool()>& holds) {
  (void)eventually([&] { return stopping_.load() || holds(); });
}

FakeServer::FakeServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = listen_on_any_port(&port_);
  acceptor_ = std::thread([this] { accept_all(); });
}

FakeServer::~FakeServer() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

std::vector<FakeRequest> FakeServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

size_t FakeServer::num_connections() const {
  const std::lock_guard lock(mutex_);
  return sockets_.size();
}

void FakeServer::accept_all() {
  for (;;) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void FakeServer::serve(int socket) {
  std::string rest;
  for (FakeRequest request; !stopping_ && read_request(socket, &rest, &request); request = {}) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    FakeReply reply(socket, stopping_);
    handler_(request, reply);
    if (reply.closed()) break;
  }
  shutdown(socket, SHUT_RDWR);
}

int closed_port() {
  int port = 0;
  ::close(listen_on_any_port(&port));
  return port;
}

void stream_completion(FakeReply& reply, int num_tokens, std::chrono::milliseconds gap) {
  reply.begin_stream();
  for (int i = 0; i < num_tokens; ++i) {
    reply.pause(gap);
    const std::string finish = i + 1 == num_tokens ? "\"length\"" : "null";
    reply.event(R"({"choices":[{"index":0,"text":"t)" + std::to_string(i) +
                R"( ","finish_reason":)" + finish + "}]}");
  }
  reply.event(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":)" +
              std::to_string(num_tokens) + "}}");
  reply.event("[DONE]");
  reply.end_stream();
}

}  // namespace foretoken::test
