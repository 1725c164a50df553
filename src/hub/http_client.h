#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/client.h"

namespace foretoken {

struct HttpSettings {
  std::string endpoint;  // its origin (scheme, host, port) is the only one that gets the token
  std::string token;
  std::string ca_file;
  std::chrono::milliseconds connect_timeout{10000};
  std::chrono::milliseconds stall_timeout{30000};  // without a byte
  std::function<bool()> cancelled;
};

// What came back. Exactly one of these holds: `error` is set (asking again is no use), `failure` is
// set (the network failed), or `status` is the server's answer.
struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of answers that no on_body took
  std::string failure;
  Status error;

  // Empty when the header is missing.
  std::string header(const std::string& name) const;
  // A decimal header, or -1.
  int64_t number(const std::string& name) const;
  // Worth another attempt: the network, or a server that is busy or broken for now.
  bool is_transient() const;
};

struct HttpRequest {
  std::string url;
  bool head = false;
  int64_t from = 0;                   // first byte wanted
  bool stay_on_host = false;          // a redirect to another host is not followed: it is the reply
  size_t max_body = size_t{1} << 20;  // of `body`; more is an error
  // Of an answer 2xx: its head, then its bytes. An error ends the transfer and becomes the reply's.
  std::function<Status(const HttpReply&)> on_start = {};
  std::function<Status(std::string_view)> on_body = {};
};

// A net::Client with redirects followed here, so that the token never leaves its origin. The
// headers X-Repo-Commit, X-Linked-Etag and X-Linked-Size of a redirect stay in the final reply.
// Proxies come from the usual environment variables. One thread.
class HttpClient {
 public:
  explicit HttpClient(HttpSettings settings);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  HttpReply send(const HttpRequest& request);
  bool cancelled() const { return settings_.cancelled && settings_.cancelled(); }

 private:
  struct Attempt;
  bool is_secure() const;
  net::Headers headers_of(const HttpRequest& request, const std::string& url) const;
  HttpReply send_once(const HttpRequest& request, const std::string& url, std::string* next);

  HttpSettings settings_;
  std::unique_ptr<net::Client> client_;
};

// Scheme, host and port of a URL, in one spelling; empty when it is none.
std::string url_origin(const std::string& url);

// `text` with everything but letters, digits, '-', '_', '.' and '~' as %XX.
std::string url_quote(std::string_view text);

}  // namespace foretoken
