#include "hub/http_client.h"

#include <curl/curl.h>
#include <foretoken/version.h>

#include <cctype>
#include <charconv>

#include "base/text/ascii_text.h"

namespace foretoken {
namespace {

constexpr int kMaxRedirects = 10;
constexpr std::chrono::milliseconds kWatchEvery{50};

using CurlText = std::unique_ptr<char, decltype(&curl_free)>;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string url_part(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  return CurlText(text, curl_free).get();
}

// Where a redirect of `url` leads; empty where its Location is no address.
std::string redirect_target(const std::string& url, const std::string& location) {
  if (location.empty()) return "";
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  const unsigned flags = CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE | CURLU_ALLOW_SPACE;
  for (const std::string* part : {&url, &location}) {
    if (curl_url_set(parsed.get(), CURLUPART_URL, part->c_str(), flags) != CURLUE_OK) return "";
  }
  return url_part(parsed.get(), CURLUPART_URL, 0);
}

// A redirect's headers that describe the file it stands for.
void keep_linked_headers(const HttpReply& redirect, std::map<std::string, std::string>* kept) {
  for (const char* name : {"x-repo-commit", "x-linked-etag", "x-linked-size"}) {
    const auto found = redirect.headers.find(name);
    if (found != redirect.headers.end()) kept->insert(*found);
  }
}

}  // namespace

struct HttpClient::Attempt {
  HttpClient& client;
  const HttpRequest& request;
  HttpReply reply;
  bool started = false;
  std::chrono::steady_clock::time_point last_change = std::chrono::steady_clock::now();
  bool stalled = false;
  Status end;

  bool is_success() const { return reply.status >= 200 && reply.status < 300; }

  void start() {
    if (started || !is_success()) return;
    started = true;
    if (request.on_start) reply.error = request.on_start(reply);
  }

  void take_head(int status, const net::Headers& headers) {
    last_change = std::chrono::steady_clock::now();
    reply.status = status;
    for (const auto& [name, value] : headers) reply.headers[lower_case(name)] = value;
  }

  void take_body(std::string_view bytes) {
    start();
    if (!reply.error.ok()) return client.client_->stop();
    if (is_success() && request.on_body) {
      reply.error = request.on_body(bytes);
    } else if (reply.body.size() + bytes.size() <= request.max_body) {
      reply.body.append(bytes);
    } else if (is_success()) {
      reply.error = invalid_argument("the answer of " + request.url + " is larger than " +
                                     std::to_string(request.max_body) + " bytes; it is refused");
    }
    // The text of an error page is of no use beyond its beginning.
    if (!reply.error.ok()) client.client_->stop();
    // A disk that took long to write them is no silence of the server.
    last_change = std::chrono::steady_clock::now();
  }

  // Looks for the caller's wish and for a connection that says nothing.
  void watch() {
    const auto now = std::chrono::steady_clock::now();
    stalled = now - last_change > client.settings_.stall_timeout;
    if (stalled || client.cancelled()) return client.client_->stop();
    client.client_->call_at(now + kWatchEvery, [this] { watch(); });
  }
};

std::string HttpReply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

int64_t HttpReply::number(const std::string& name) const {
  const std::string text = header(name);
  int64_t value = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

bool HttpReply::is_transient() const {
  if (!error.ok()) return false;
  return !failure.empty() || status == 408 || status == 429 || status == 500 || status == 502 ||
         status == 503 || status == 504;
}

HttpClient::HttpClient(HttpSettings settings) : settings_(std::move(settings)) {
  net::ClientOptions options;
  options.uses_proxies = true;
  options.only_https = is_secure();
  options.only_http1 = false;
  options.ca_file = settings_.ca_file;
  options.certificate_remedy =
      "check the clock, and name the certificates of a proxy or mirror of your own in "
      "SSL_CERT_FILE";
  options.connect_timeout = settings_.connect_timeout;
  options.buffer_bytes = 256L << 10;
  client_ = std::make_unique<net::Client>(options);
}

HttpClient::~HttpClient() = default;

bool HttpClient::is_secure() const {
  return url_origin(settings_.endpoint).rfind("https:", 0) == 0;
}

net::Headers HttpClient::headers_of(const HttpRequest& request, const std::string& url) const {
  // Files are compared with the size and digest of their plain bytes.
  net::Headers headers = {{"Accept", "*/*"},
                          {"Accept-Encoding", "identity"},
                          {"User-Agent", std::string("foretoken/") + kVersion}};
  if (!settings_.token.empty() && url_origin(url) == url_origin(settings_.endpoint)) {
    headers.emplace_back("Authorization", "Bearer " + settings_.token);
  }
  if (request.from > 0) {
    headers.emplace_back("Range", "bytes=" + std::to_string(request.from) + "-");
  }
  return headers;
}

HttpReply HttpClient::send_once(const HttpRequest& request, const std::string& url,
                                std::string* next) {
  next->clear();
  Attempt attempt{.client = *this, .request = request, .reply = {}, .end = {}};
  HttpReply& reply = attempt.reply;
  const std::string origin = url_origin(url);
  if (origin.rfind("https:", 0) != 0 && (is_secure() || origin.rfind("http:", 0) != 0)) {
    reply.error = invalid_argument(
        "'" + url + "' is no address that is allowed here; check HF_ENDPOINT (https://host)");
    return std::move(reply);
  }
  net::ClientHandlers handlers;
  handlers.on_head = [&](int status, const net::Headers& headers) {
    attempt.take_head(status, headers);
  };
  handlers.on_body = [&](std::string_view bytes) { attempt.take_body(bytes); };
  handlers.on_end = [&](const Status& status) {
    attempt.end = status;
    client_->stop();
  };
  client_->send({request.head ? "HEAD" : "GET", url, headers_of(request, url), "", {}},
                std::move(handlers));
  attempt.watch();
  client_->run();
  // An answer without a body.
  if (attempt.end.ok()) attempt.start();
  if (cancelled()) reply.error = aborted("the download was interrupted");
  if (!reply.error.ok()) return std::move(reply);
  if (attempt.end.code() == StatusCode::kInvalidArgument) {
    reply.error = attempt.end;
  } else if (!attempt.end.ok()) {
    reply.failure = attempt.stalled ? "nothing came for a while" : attempt.end.message();
  } else if (is_redirect(reply.status)) {
    *next = redirect_target(url, reply.header("location"));
  }
  return std::move(reply);
}

HttpReply HttpClient::send(const HttpRequest& request) {
  std::string url = request.url;
  std::map<std::string, std::string> linked;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    std::string next;
    HttpReply reply = send_once(request, url, &next);
    keep_linked_headers(reply, &linked);
    const bool stays = request.stay_on_host && url_origin(next) != url_origin(url);
    if (next.empty() || stays) {
      reply.headers.insert(linked.begin(), linked.end());
      return reply;
    }
    url = next;
  }
  HttpReply reply;
  reply.error = invalid_argument(request.url + " redirects in a circle (more than " +
                                 std::to_string(kMaxRedirects) + " times); check HF_ENDPOINT");
  return reply;
}

std::string url_origin(const std::string& url) {
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return "";
  return lower_case(url_part(parsed.get(), CURLUPART_SCHEME, 0) + "://" +
                    url_part(parsed.get(), CURLUPART_HOST, 0) + ":" +
                    url_part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

std::string url_quote(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      quoted += c;
    } else {
      quoted += '%';
      quoted += "0123456789ABCDEF"[byte >> 4];
      quoted += "0123456789ABCDEF"[byte & 15];
    }
  }
  return quoted;
}

}  // namespace foretoken
