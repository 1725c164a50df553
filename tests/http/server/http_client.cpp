#include "http/server/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "http/message/header_text.h"

namespace foretoken::http {

std::string Answer::header(std::string_view name) const {
  for (size_t line = head.find("\r\n"); line != std::string::npos && line + 2 < head.size();) {
    const size_t begin = line + 2;
    line = head.find("\r\n", begin);
    const std::string text = head.substr(begin, line - begin);
    const size_t colon = text.find(':');
    if (colon != std::string::npos && same_name(text.substr(0, colon), name)) {
      return std::string(trimmed(text.substr(colon + 1)));
    }
  }
  return "";
}

HttpClient::HttpClient(int fd) : fd_(fd) {
  const timeval limit{120, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      ssl_(std::exchange(other.ssl_, nullptr)),
      buffer_(std::move(other.buffer_)) {}

HttpClient& HttpClient::operator=(HttpClient&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(ssl_, other.ssl_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

HttpClient::~HttpClient() { close(); }

HttpClient HttpClient::tcp(uint16_t port, const std::string& host) {
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
  } else {
    inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    size = sizeof(sockaddr_in6);
  }
  const int fd = ::socket(address.ss_family, SOCK_STREAM, 0);
  HttpClient client(fd);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) client.close();
  return client;
}

HttpClient HttpClient::unix_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  HttpClient client(fd);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) client.close();
  return client;
}

bool HttpClient::start_tls(SSL_CTX* context) {
  ssl_ = SSL_new(context);
  SSL_set_fd(ssl_, fd_);
  return SSL_connect(ssl_) == 1;
}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ssl_ != nullptr
                              ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                              : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string HttpClient::read_some(size_t limit) {
  if (!buffer_.empty()) {
    std::string bytes = buffer_.substr(0, limit);
    buffer_.erase(0, bytes.size());
    return bytes;
  }
  std::string bytes(limit, '\0');
  const ssize_t count = ssl_ != nullptr ? SSL_read(ssl_, bytes.data(), static_cast<int>(limit))
                                        : ::recv(fd_, bytes.data(), limit, 0);
  bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return bytes;
}

bool HttpClient::reaches_end() {
  for (;;) {
    char bytes[4096];
    buffer_.clear();
    const ssize_t count =
        ssl_ != nullptr ? SSL_read(ssl_, bytes, sizeof bytes) : ::recv(fd_, bytes, sizeof bytes, 0);
    if (count <= 0) return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
}

bool HttpClient::read_until(std::string_view mark) {
  while (buffer_.find(mark) == std::string::npos) {
    std::string held = std::exchange(buffer_, "");
    const std::string more = read_some();
    buffer_ = held + more;
    if (more.empty()) return false;
  }
  return true;
}

bool HttpClient::read_bytes(size_t count) {
  while (buffer_.size() < count) {
    std::string held = std::exchange(buffer_, "");
    const std::string more = read_some();
    buffer_ = std::move(held += more);
    if (more.empty()) return false;
  }
  return true;
}

Answer HttpClient::read_answer(bool head_only) {
  Answer answer;
  if (!read_until("\r\n\r\n")) return answer;
  answer.head = buffer_.substr(0, buffer_.find("\r\n\r\n") + 2);
  buffer_.erase(0, answer.head.size() + 2);
  answer.status = std::stoi(answer.head.substr(9, 3));
  answer.whole = true;
  if (head_only || answer.status == 204 || answer.status / 100 == 1) return answer;
  if (answer.header("Transfer-Encoding") == "chunked") {
    for (size_t size = 1; size != 0 && answer.whole;) {
      answer.whole = read_until("\r\n");
      if (!answer.whole) break;
      size = std::stoul(buffer_, nullptr, 16);
      buffer_.erase(0, buffer_.find("\r\n") + 2);
      answer.whole = read_bytes(size + 2);
      answer.body += buffer_.substr(0, size);
      buffer_.erase(0, size + 2);
    }
  } else if (!answer.header("Content-Length").empty()) {
    const size_t size = std::stoul(answer.header("Content-Length"));
    answer.whole = read_bytes(size);
    answer.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
  } else {
    for (std::string more = read_some(); !more.empty(); more = read_some()) answer.body += more;
  }
  return answer;
}

void HttpClient::close() {
  if (ssl_ != nullptr) SSL_free(std::exchange(ssl_, nullptr));
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::string get(const std::string& path, const std::string& headers) {
  return "GET " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n";
}

std::string post(const std::string& path, const std::string& body, const std::string& headers) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

}  // namespace foretoken::http
