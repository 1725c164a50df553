#include "net/client.h"

#include <netdb.h>
#include <signal.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/socket_waits.h"
#include "net/transfer.h"

namespace foretoken::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr long kMaxIdle = 4096;

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

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> look_up(const Url& url, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
  if (code != 0) {
    return not_found("the host '" + url.host + "' is not known: " + gai_strerror(code));
  }
  return Addresses(found, freeaddrinfo);
}

// "host:port:address,..." for libcurl, so that no look-up is measured; empty where `url` has an
// address already.
Result<std::string> looked_up(const Url& url) {
  if (look_up(url, AI_NUMERICHOST).ok()) return std::string();
  FT_ASSIGN_OR_RETURN(const Addresses all, look_up(url, 0));
  std::string list;
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    const int failed =
        getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    if (failed == 0) list += (list.empty() ? "" : ",") + std::string(text);
  }
  return url.host + ":" + url.port + ":" + list;
}

}  // namespace

struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

struct Client::Impl {
  explicit Impl(const ClientOptions& wanted);
  ~Impl() { drop_all(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*);
  static int on_timer(CURLM*, long wait_ms, void* self);

  bool has_work() const { return !waiting.empty() || !active.empty() || !calls.empty(); }
  void begin_waiting();
  void make_due_calls();
  void tend_due();
  void tend(std::span<const SocketWaits::Ready> ready);
  void end_finished();
  void end(CURL* handle, CURLcode code);
  void end_all();
  void drop_all();
  std::optional<steady_clock::time_point> next_time() const;

  const ClientOptions options;
  std::string prefix;    // of paths
  HeaderList addresses;  // of the server's host; empty where the URL has one
  // Both are written by callbacks of libcurl's last breath too.
  SocketWaits waits;
  std::optional<steady_clock::time_point> libcurls_time;
  std::unique_ptr<CURLM, FreeMulti> multi;
  std::deque<std::unique_ptr<Transfer>> waiting;  // libcurl takes none inside of its callbacks
  std::map<CURL*, std::unique_ptr<Transfer>> active;
  std::multimap<steady_clock::time_point, std::function<void()>> calls;
  size_t num_connections = 0;
  bool stopping = false;
};

Client::Impl::Impl(const ClientOptions& wanted) : options(wanted) {
  start_curl();
  multi.reset(curl_multi_init());
  FT_CHECK(multi != nullptr);
  const auto set = [this](CURLMoption option, auto value) {
    FT_CHECK(curl_multi_setopt(multi.get(), option, value) == CURLM_OK);
  };
  set(CURLMOPT_SOCKETFUNCTION, &Impl::on_socket);
  set(CURLMOPT_SOCKETDATA, static_cast<void*>(this));
  set(CURLMOPT_TIMERFUNCTION, &Impl::on_timer);
  set(CURLMOPT_TIMERDATA, static_cast<void*>(this));
  set(CURLMOPT_MAXCONNECTS, kMaxIdle);
}

int Client::Impl::on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  SocketWaits& waits = static_cast<Impl*>(self)->waits;
  if (what == CURL_POLL_REMOVE) {
    waits.forget(socket);
  } else {
    waits.watch(socket, (what & CURL_POLL_IN) != 0, (what & CURL_POLL_OUT) != 0);
  }
  return 0;
}

int Client::Impl::on_timer(CURLM*, long wait_ms, void* self) {
  auto& impl = *static_cast<Impl*>(self);
  impl.libcurls_time.reset();
  if (wait_ms >= 0) impl.libcurls_time = steady_clock::now() + milliseconds(wait_ms);
  return 0;
}

void Client::Impl::begin_waiting() {
  while (!waiting.empty() && !stopping) {
    std::unique_ptr<Transfer> transfer = std::move(waiting.front());
    waiting.pop_front();
    CURL* const handle = transfer->handle();
    active.emplace(handle, std::move(transfer));
    FT_CHECK(curl_multi_add_handle(multi.get(), handle) == CURLM_OK);
  }
}

// Those that are added meanwhile come in the next round, whatever their time.
void Client::Impl::make_due_calls() {
  std::deque<std::function<void()>> due;
  const auto end = calls.upper_bound(steady_clock::now());
  for (auto call = calls.begin(); call != end; ++call) due.push_back(std::move(call->second));
  calls.erase(calls.begin(), end);
  for (; !due.empty() && !stopping; due.pop_front()) due.front()();
}

void Client::Impl::tend_due() {
  if (!libcurls_time || *libcurls_time > steady_clock::now()) return;
  libcurls_time.reset();
  int num_running = 0;
  FT_CHECK(curl_multi_socket_action(multi.get(), CURL_SOCKET_TIMEOUT, 0, &num_running) == CURLM_OK);
}

void Client::Impl::tend(std::span<const SocketWaits::Ready> ready) {
  for (const SocketWaits::Ready& each : ready) {
    const int what = (each.in ? CURL_CSELECT_IN : 0) | (each.out ? CURL_CSELECT_OUT : 0) |
                     (each.failed ? CURL_CSELECT_ERR : 0);
    int num_running = 0;
    FT_CHECK(curl_multi_socket_action(multi.get(), each.socket, what, &num_running) == CURLM_OK);
  }
}

void Client::Impl::end_finished() {
  int num_left = 0;
  while (CURLMsg* message = stopping ? nullptr : curl_multi_info_read(multi.get(), &num_left)) {
    if (message->msg == CURLMSG_DONE) end(message->easy_handle, message->data.result);
  }
}

void Client::Impl::end(CURL* handle, CURLcode code) {
  const auto found = active.find(handle);
  const std::unique_ptr<Transfer> transfer = std::move(found->second);
  active.erase(found);
  num_connections += transfer->num_connections();
  const Status status = transfer->end_of(code);
  curl_multi_remove_handle(multi.get(), handle);
  if (transfer->handlers().on_end) transfer->handlers().on_end(status);
}

// After stop(). Handlers may send more, which ends at once too.
void Client::Impl::end_all() {
  calls.clear();
  while (!waiting.empty() || !active.empty()) {
    while (!active.empty()) end(active.begin()->first, CURLE_ABORTED_BY_CALLBACK);
    if (waiting.empty()) break;
    const std::unique_ptr<Transfer> transfer = std::move(waiting.front());
    waiting.pop_front();
    if (transfer->handlers().on_end) transfer->handlers().on_end(aborted("stopped"));
  }
  calls.clear();
}

void Client::Impl::drop_all() {
  for (const auto& [handle, transfer] : active) curl_multi_remove_handle(multi.get(), handle);
  active.clear();
}

std::optional<steady_clock::time_point> Client::Impl::next_time() const {
  if (calls.empty()) return libcurls_time;
  const auto call = calls.begin()->first;
  return libcurls_time ? std::min(*libcurls_time, call) : call;
}

Client::Client(const ClientOptions& options) : impl_(std::make_unique<Impl>(options)) {}

Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::create(const Url& url, const ClientOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::string addresses, looked_up(url));
  auto client = std::make_unique<Client>(options);
  client->impl_->prefix = url.origin() + url.path;
  if (!addresses.empty()) add_line(client->impl_->addresses, addresses);
  return client;
}

void Client::send(ClientRequest request, ClientHandlers handlers) {
  Impl& impl = *impl_;
  std::string address = impl.prefix + request.path;
  auto transfer = std::make_unique<Transfer>(impl.options, std::move(address), std::move(request),
                                             std::move(handlers), impl.stopping);
  if (impl.addresses) {
    curl_easy_setopt(transfer->handle(), CURLOPT_RESOLVE, impl.addresses.get());
  }
  impl.waiting.push_back(std::move(transfer));
}

void Client::call_at(steady_clock::time_point time, std::function<void()> work) {
  impl_->calls.emplace(time, std::move(work));
}

void Client::run() {
  const SigpipeGuard guard;
  Impl& impl = *impl_;
  while (impl.has_work() && !impl.stopping) {
    impl.make_due_calls();
    impl.begin_waiting();
    impl.tend_due();
    impl.end_finished();
    const bool goes_on = !impl.stopping && impl.waiting.empty() && impl.has_work();
    if (goes_on) impl.tend(impl.waits.wait(impl.next_time()));
    impl.end_finished();
  }
  if (impl.stopping) impl.end_all();
  impl.stopping = false;
}

void Client::stop() { impl_->stopping = true; }

size_t Client::num_connections() const { return impl_->num_connections; }

}  // namespace foretoken::net
