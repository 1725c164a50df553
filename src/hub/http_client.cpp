#include "hub/http_client.h"

#include <curl/curl.h>
#include <foretoken/version.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kMaxHeaderBytes = size_t{256} << 10;

using CurlText = std::unique_ptr<char, decltype(&curl_free)>;
using HeaderList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

void start_curl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  FT_CHECK(code == CURLE_OK);
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string url_part(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  return CurlText(text, curl_free).get();
}

// Keeps a connection that the server closed from ending the process: without signal handlers of its
// own libcurl leaves SIGPIPE to the caller.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeGuard() {
    const timespec now = {};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

// A redirect's headers that describe the file it stands for.
void keep_linked_headers(const HttpReply& redirect, std::map<std::string, std::string>* kept) {
  for (const char* name : {"x-repo-commit", "x-linked-etag", "x-linked-size"}) {
    const auto found = redirect.headers.find(name);
    if (found != redirect.headers.end()) kept->insert(*found);
  }
}

}  // namespace

struct HttpClient::Transfer {
  const HttpClient& client;
  const HttpRequest& request;
  HttpReply reply;
  HeaderList sent{nullptr, curl_slist_free_all};
  size_t header_bytes = 0;
  bool started = false;
  int64_t last_bytes = -1;
  std::chrono::steady_clock::time_point last_change = {};
  bool stalled = false;
  char message[CURL_ERROR_SIZE] = "";

  bool is_success() const { return reply.status >= 200 && reply.status < 300; }

  void start() {
    if (started || !is_success()) return;
    started = true;
    if (request.on_start) reply.error = request.on_start(reply);
  }

  bool take_header(std::string_view line) {
    header_bytes += line.size();
    if (header_bytes > kMaxHeaderBytes) {
      reply.error = invalid_argument("the server at " + request.url + " sends endless headers");
      return false;
    }
    if (line.substr(0, 5) == "HTTP/") {
      reply.headers.clear();
      const size_t space = line.find(' ');
      reply.status = 0;
      if (space != std::string_view::npos) {
        std::from_chars(line.data() + space + 1, line.data() + line.size(), reply.status);
      }
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return true;
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    while (!value.empty() && (value.back() == '\r' || value.back() == '\n' || value.back() == ' '))
      value.remove_suffix(1);
    reply.headers[lower(std::string(line.substr(0, colon)))] = std::string(value);
    return true;
  }

  bool take_body(std::string_view bytes) {
    start();
    if (!reply.error.ok()) return false;
    if (is_success() && request.on_body) {
      reply.error = request.on_body(bytes);
      return reply.error.ok();
    }
    if (reply.body.size() + bytes.size() > request.max_body) {
      // The text of an error page is of no use beyond its beginning.
      if (!is_success()) return true;
      reply.error = invalid_argument("the answer of " + request.url + " is larger than " +
                                     std::to_string(request.max_body) + " bytes; it is refused");
      return false;
    }
    reply.body.append(bytes);
    return true;
  }

  static size_t on_header(char* data, size_t size, size_t count, void* self) {
    const size_t bytes = size * count;
    return static_cast<Transfer*>(self)->take_header({data, bytes}) ? bytes : 0;
  }
  static size_t on_data(char* data, size_t size, size_t count, void* self) {
    const size_t bytes = size * count;
    return static_cast<Transfer*>(self)->take_body({data, bytes}) ? bytes : bytes + 1;
  }
  // Called about once a second when nothing comes, more often otherwise.
  static int on_progress(void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
    auto& transfer = *static_cast<Transfer*>(self);
    const auto now = std::chrono::steady_clock::now();
    const int64_t bytes = received + static_cast<int64_t>(transfer.header_bytes);
    if (bytes != transfer.last_bytes) {
      transfer.last_bytes = bytes;
      transfer.last_change = now;
    }
    transfer.stalled = now - transfer.last_change > transfer.client.settings_.stall_timeout;
    return transfer.stalled || transfer.client.cancelled() ? 1 : 0;
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
  start_curl();
  handle_ = curl_easy_init();
  FT_CHECK(handle_ != nullptr);
}

HttpClient::~HttpClient() { curl_easy_cleanup(handle_); }

void HttpClient::prepare(Transfer& transfer, const std::string& url) {
  const HttpRequest& request = transfer.request;
  curl_easy_reset(handle_);
  const auto set = [this](CURLoption option, auto value) {
    FT_CHECK(curl_easy_setopt(handle_, option, value) == CURLE_OK);
  };
  const auto add = [&transfer](const std::string& line) {
    curl_slist* longer = curl_slist_append(transfer.sent.get(), line.c_str());
    FT_CHECK(longer != nullptr);
    (void)transfer.sent.release();
    transfer.sent.reset(longer);
  };
  const std::string origin = url_origin(url);
  // Files are compared with the size and digest of their plain bytes.
  add("Accept-Encoding: identity");
  if (!settings_.token.empty() && origin == url_origin(settings_.endpoint)) {
    add("Authorization: Bearer " + settings_.token);
  }
  if (request.from > 0) add("Range: bytes=" + std::to_string(request.from) + "-");
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_HTTPHEADER, transfer.sent.get());
  set(CURLOPT_NOBODY, request.head ? 1L : 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  const bool secure = url_origin(settings_.endpoint).rfind("https:", 0) == 0;
  set(CURLOPT_PROTOCOLS_STR, secure ? "https" : "http,https");
  set(CURLOPT_USERAGENT, (std::string("foretoken/") + kVersion).c_str());
  if (!settings_.ca_file.empty()) set(CURLOPT_CAINFO, settings_.ca_file.c_str());
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings_.connect_timeout.count()));
  // Only faster; a handle whose transfer was broken off may refuse it.
  (void)curl_easy_setopt(handle_, CURLOPT_BUFFERSIZE, 256L << 10);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(transfer.message));
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_data);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
}

HttpReply HttpClient::send_once(const HttpRequest& request, const std::string& url,
                                std::string* next) {
  Transfer transfer{.client = *this, .request = request, .reply = {}};
  prepare(transfer, url);
  const CURLcode code = curl_easy_perform(handle_);
  HttpReply& reply = transfer.reply;
  // An answer without a body.
  if (code == CURLE_OK) transfer.start();
  if (cancelled()) reply.error = aborted("the download was interrupted");
  if (!reply.error.ok()) return std::move(reply);
  if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT) {
    reply.error = invalid_argument("'" + url +
                                   "' is no address that is allowed here; check "
                                   "HF_ENDPOINT (https://host)");
  } else if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
    reply.error = invalid_argument("the certificate of " + url_origin(url) + " is not trusted (" +
                                   transfer.message +
                                   "); check the clock, and name the certificates of a proxy or "
                                   "mirror of your own in SSL_CERT_FILE");
  } else if (code != CURLE_OK) {
    reply.failure = transfer.stalled              ? "nothing came for a while"
                    : transfer.message[0] != '\0' ? transfer.message
                                                  : curl_easy_strerror(code);
  }
  char* target = nullptr;
  if (code == CURLE_OK && is_redirect(reply.status)) {
    curl_easy_getinfo(handle_, CURLINFO_REDIRECT_URL, &target);
  }
  *next = target == nullptr ? "" : target;
  return std::move(reply);
}

HttpReply HttpClient::send(const HttpRequest& request) {
  const SigpipeGuard guard;
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
  return lower(url_part(parsed.get(), CURLUPART_SCHEME, 0) + "://" +
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
