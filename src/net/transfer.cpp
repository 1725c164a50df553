#include "net/transfer.h"

#include <spdlog/fmt/fmt.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace foretoken::net {
namespace {

constexpr size_t kMaxHeadBytes = size_t{256} << 10;

template <class Value>
void set(CURL* handle, CURLoption option, Value value) {
  FT_CHECK(curl_easy_setopt(handle, option, value) == CURLE_OK);
}

template <class Value>
Value info_of(CURL* handle, CURLINFO what) {
  Value value{};
  FT_CHECK(curl_easy_getinfo(handle, what, &value) == CURLE_OK);
  return value;
}

// Scheme, host and port, as a user would write them.
std::string origin_of(const std::string& address) {
  const size_t host = address.find("://");
  return host == std::string::npos ? address : address.substr(0, address.find('/', host + 3));
}

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1e3; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  return text;
}

// What the environment names for programs that use OpenSSL.
void set_trusted(CURL* handle, const std::string& ca_file) {
  const char* file = ca_file.empty() ? std::getenv("SSL_CERT_FILE") : ca_file.c_str();
  const char* folder = ca_file.empty() ? std::getenv("SSL_CERT_DIR") : nullptr;
  if (file != nullptr && *file != '\0') set(handle, CURLOPT_CAINFO, file);
  if (folder != nullptr && *folder != '\0') set(handle, CURLOPT_CAPATH, folder);
}

}  // namespace

void add_line(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  FT_CHECK(longer != nullptr);
  (void)list.release();
  list.reset(longer);
}

void start_curl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  FT_CHECK(code == CURLE_OK);
}

Transfer::Transfer(const ClientOptions& options, std::string address, ClientRequest request,
                   ClientHandlers handlers, const bool& is_stopping)
    : options_(options),
      address_(std::move(address)),
      origin_(origin_of(address_)),
      request_(std::move(request)),
      handlers_(std::move(handlers)),
      is_stopping_(is_stopping),
      handle_(curl_easy_init()) {
  FT_CHECK(handle_ != nullptr);
  CURL* const curl = handle_.get();
  set(curl, CURLOPT_PRIVATE, static_cast<void*>(this));
  set(curl, CURLOPT_URL, address_.c_str());
  set(curl, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Whoever stops a request, or has waited long enough, does not wait for the name of a host.
  set(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
  set(curl, CURLOPT_PROTOCOLS_STR, options_.only_https ? "https" : "http,https");
  set(curl, CURLOPT_HTTP_VERSION,
      options_.only_http1 ? long{CURL_HTTP_VERSION_1_1} : long{CURL_HTTP_VERSION_2TLS});
  set(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!options_.uses_proxies) set(curl, CURLOPT_PROXY, "");
  set(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
  set(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout().count()));
  set(curl, CURLOPT_BUFFERSIZE, options_.buffer_bytes);
  set(curl, CURLOPT_ERRORBUFFER, static_cast<char*>(message_));
  set(curl, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(curl, CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(curl, CURLOPT_WRITEFUNCTION, &Transfer::on_data);
  set(curl, CURLOPT_WRITEDATA, static_cast<void*>(this));
  set_tls();
  set_request();
}

void Transfer::set_tls() {
  set(handle(), CURLOPT_SSL_VERIFYPEER, options_.verify_tls ? 1L : 0L);
  set(handle(), CURLOPT_SSL_VERIFYHOST, options_.verify_tls ? 2L : 0L);
  if (options_.verify_tls) set_trusted(handle(), options_.ca_file);
}

// What libcurl would add by itself is switched off by a name without a value.
void Transfer::set_request() {
  for (const auto& [name, value] : request_.headers) {
    add_line(sent_, value.empty() ? name + ";" : name + ": " + value);
  }
  const bool has_body = !request_.body.empty() || request_.method == "POST";
  if (has_body) {
    set(handle(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(handle(), CURLOPT_POSTFIELDS, request_.body.c_str());
    add_line(sent_, "Expect:");
    if (header_of(request_.headers, "Content-Type").empty()) add_line(sent_, "Content-Type:");
  }
  if (request_.method == "HEAD") {
    set(handle(), CURLOPT_NOBODY, 1L);
  } else if (request_.method != (has_body ? "POST" : "GET")) {
    set(handle(), CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  if (header_of(request_.headers, "Accept").empty()) add_line(sent_, "Accept:");
  set(handle(), CURLOPT_HTTPHEADER, sent_.get());
}

std::chrono::milliseconds Transfer::timeout() const {
  return request_.timeout.count() > 0 ? request_.timeout : options_.request_timeout;
}

size_t Transfer::on_header(char* data, size_t size, size_t count, void* self) {
  const size_t bytes = size * count;
  return static_cast<Transfer*>(self)->take_line({data, bytes}) ? bytes : 0;
}

size_t Transfer::on_data(char* data, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const size_t bytes = size * count;
  // More than was given ends the transfer.
  if (transfer.is_stopping_) return bytes + 1;
  if (transfer.handlers_.on_body) transfer.handlers_.on_body({data, bytes});
  return bytes;
}

// A line of an answer's head; an empty one ends it. Heads of 1xx are passed over, and lines behind
// the body's chunks too.
bool Transfer::take_line(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > kMaxHeadBytes || is_stopping_) return false;
  if (line.substr(0, 5) == "HTTP/") {
    received_.clear();
    const size_t space = line.find(' ');
    status_ = 0;
    if (space != std::string_view::npos) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), status_);
    }
    return true;
  }
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    received_.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
    return true;
  }
  if (trimmed(line).empty() && status_ >= 200 && handlers_.on_head) {
    const auto tell = std::exchange(handlers_.on_head, nullptr);
    tell(status_, received_);
  }
  return !is_stopping_;
}

size_t Transfer::num_connections() const {
  return static_cast<size_t>(info_of<long>(handle(), CURLINFO_NUM_CONNECTS));
}

Status Transfer::too_late() const {
  const std::chrono::milliseconds limit = timeout();
  const auto spent =
      std::chrono::microseconds(info_of<curl_off_t>(handle(), CURLINFO_TOTAL_TIME_T));
  const bool is_connected = info_of<curl_off_t>(handle(), CURLINFO_PRETRANSFER_TIME_T) > 0;
  if (!is_connected && (limit.count() == 0 || spent < limit)) {
    return internal_error(fmt::format("cannot connect to {} within {} s", origin_,
                                      seconds(options_.connect_timeout)));
  }
  return internal_error(fmt::format("{} {}: no end within {} s",
                                    is_connected ? "reading from" : "connecting to", origin_,
                                    seconds(limit)));
}

Status Transfer::broken(CURLcode code) const {
  const long number = info_of<long>(handle(), CURLINFO_OS_ERRNO);
  const bool closed = code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE ||
                      (code == CURLE_RECV_ERROR && number == 0) || number == ECONNRESET ||
                      number == EPIPE;
  const std::string libcurls = message_[0] != '\0' ? message_ : curl_easy_strerror(code);
  const bool is_connected = info_of<curl_off_t>(handle(), CURLINFO_PRETRANSFER_TIME_T) > 0;
  if (!is_connected) {
    const bool by_system = code == CURLE_COULDNT_CONNECT && number != 0;
    return internal_error("cannot connect to " + origin_ + ": " +
                          (by_system ? std::strerror(static_cast<int>(number)) : libcurls));
  }
  return internal_error((code == CURLE_SEND_ERROR ? "sending to " : "reading from ") + origin_ +
                        ": " + (closed ? "the server closed the connection" : libcurls));
}

Status Transfer::end_of(CURLcode code) const {
  if (is_stopping_) return aborted("stopped");
  if (code == CURLE_OK) return {};
  if (head_bytes_ > kMaxHeadBytes) {
    return invalid_argument("the server at " + origin_ + " sends endless headers");
  }
  switch (code) {
    case CURLE_URL_MALFORMAT:
      return invalid_argument("'" + address_ + "' is no address that is allowed here");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return invalid_argument("TLS with " + origin_ + " failed: " + message_ + "; " +
                              options_.certificate_remedy);
    case CURLE_OPERATION_TIMEDOUT:
      return too_late();
    case CURLE_UNSUPPORTED_PROTOCOL:
      // Also what libcurl says of an answer that is no HTTP.
      if (info_of<curl_off_t>(handle(), CURLINFO_PRETRANSFER_TIME_T) > 0) return broken(code);
      return invalid_argument("'" + address_ + "' is no address that is allowed here");
    default:
      return broken(code);
  }
}

}  // namespace foretoken::net
