#include "http/server/connection.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "base/log.h"
#include "http/message/target.h"

namespace foretoken::http {
namespace {

using boost::asio::awaitable;
using boost::system::error_code;

// Pipelined bytes that are read ahead while an answer runs.
constexpr size_t kReadAheadBytes = size_t{64} << 10;
// A refused body of at most this size is read and forgotten, so that the connection can go on.
constexpr uint64_t kForgottenBodyBytes = uint64_t{1} << 20;
// How much of a body must come in a `Timeouts::body`.
constexpr uint64_t kBodyProgressBytes = 1024;
// How often a client is looked at that cannot be heard, because reading rests or because it has
// closed its side; at first sooner, then twice as long each time.
constexpr std::chrono::milliseconds kPeerCheck{500};
constexpr std::chrono::milliseconds kFirstPeerCheck{4};
constexpr int kClientGone = 499;

}  // namespace

Connection::Connection(std::shared_ptr<ServerState> state, EventLoop& loop,
                       std::shared_ptr<const ExchangeHost> host, Stream stream, Peer peer,
                       bool surplus)
    : state_(std::move(state)),
      loop_(loop),
      host_(std::move(host)),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      surplus_(surplus),
      timer_(loop.context()) {
  loop_.connections().insert(this);
}

Connection::~Connection() {
  loop_.connections().erase(this);
  set_busy(false);
  state_->add_connection(-1);
}

void Connection::start() {
  boost::asio::co_spawn(
      loop_.context(), [self = shared_from_this()]() { return self->run(); },
      [self = shared_from_this()](const std::exception_ptr& failure) {
        try {
          if (failure) std::rethrow_exception(failure);
        } catch (const std::exception& error) {
          FT_LOG(error, "http: a connection from {} failed: {}", self->peer_.client, error.what());
        }
        self->end_exchange();
        self->stream_.close();
      });
}

void Connection::notify() {
  changed_ = true;
  timer_.cancel();
}

bool Connection::closing() const {
  return input_ended_ || write_failed_ || state_->stopping.load(std::memory_order_relaxed);
}

bool Connection::can_go_on() const {
  if (write_failed_ || state_->stopping.load(std::memory_order_relaxed)) return false;
  return !input_ended_ || !input_.empty();
}

void Connection::set_busy(bool busy) {
  if (busy == busy_) return;
  busy_ = busy;
  state_->add_busy(busy ? 1 : -1);
}

awaitable<bool> Connection::changed(Clock::time_point deadline) {
  if (!changed_) {
    timer_.expires_at(deadline);
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
  co_return std::exchange(changed_, false);
}

awaitable<void> Connection::run() {
  if (stream_.is_tls()) {
    const bool agreed = co_await handshake();
    if (!agreed) co_return;
  }
  for (bool more = true; more;) {
    more = co_await serve_request();
    set_busy(more && !input_.empty());
  }
  co_await linger();
}

awaitable<bool> Connection::handshake() {
  bool done = false;
  bool agreed = false;
  stream_.handshake(
      [this, self = shared_from_this(), &done, &agreed](const error_code& ec, size_t) {
        done = true;
        agreed = !ec;
        notify();
      });
  const auto deadline = Clock::now() + state_->config.timeouts.connect;
  while (!done) {
    // Closing ends the handshake, whose handler has the addresses of what lives here.
    if (state_->stopping || Clock::now() >= deadline) stream_.close();
    co_await changed(deadline);
  }
  co_return agreed;
}

awaitable<bool> Connection::serve_request() {
  const ServerConfig& config = state_->config;
  RequestParser parser({config.max_header_bytes, config.max_header_count, config.max_body_bytes});
  request_ = Request();
  request_.client = peer_.client;
  request_.port_number = peer_.port_number;
  request_.received = Clock::now();
  pattern_ = {};
  refusal_.reset();
  const bool has_head = co_await receive_head(parser);
  head_ = parser.head();
  request_.method = head_.method;
  request_.headers = head_.headers;
  if (!has_head) {
    if (refusal_) co_await refuse(*refusal_);
    co_return false;
  }
  first_request_ = false;
  Admission admission = admit(*state_, head_, request_);
  pattern_ = admission.pattern;
  if (surplus_) admission.answer = OwnAnswer{503, kTooManyConnections, {{"Retry-After", "1"}}};
  const bool small = head_.content_length && *head_.content_length <= kForgottenBodyBytes;
  if (admission.answer && head_.has_body() && (!small || head_.expects_continue)) {
    unread_body_ = true;
    const bool more = co_await answer_by_itself(*admission.answer, false);
    co_return more;
  }
  if (admission.answer) {
    parser.discard_body();
  } else {
    parser.set_body_limit(admission.max_body_bytes);
    if (admission.body_is_packed) parser.inflate_body();
  }
  const bool whole = co_await receive_body(parser);
  if (!whole) {
    if (refusal_) co_await refuse(*refusal_);
    co_return false;
  }
  if (admission.answer) {
    const bool more = co_await answer_by_itself(*admission.answer, !surplus_);
    co_return more;
  }
  request_.body = parser.take_body();
  make_exchange(frame_of(head_));
  dispatch(*admission.route);
  const bool more = co_await finish_answer();
  co_return more;
}

void Connection::feed(RequestParser& parser) {
  const size_t taken = parser.feed(input_);
  input_.erase(0, taken);
  if (parser.started() && !busy_) {
    set_busy(true);
    request_.received = Clock::now();
  }
}

awaitable<bool> Connection::receive_head(RequestParser& parser) {
  const Timeouts& timeouts = state_->config.timeouts;
  const auto idle_end = Clock::now() + (first_request_ ? timeouts.connect : timeouts.keep_alive);
  for (;;) {
    if (!input_.empty()) feed(parser);
    if (parser.error()) {
      refusal_ = parser.error();
      co_return false;
    }
    if (parser.head_done()) co_return true;
    if (closing() || (!parser.started() && state_->draining)) co_return false;
    const auto deadline =
        parser.started() ? receive_deadline(request_.received + timeouts.header) : idle_end;
    if (Clock::now() >= deadline) {
      if (parser.started()) refusal_ = too_late("the headers of the request took too long");
      co_return false;
    }
    start_read();
    co_await changed(deadline);
  }
}

awaitable<bool> Connection::receive_body(RequestParser& parser) {
  if (parser.done()) co_return true;
  if (head_.expects_continue && input_.empty() && head_.has_body()) {
    outgoing_.assign(1, "HTTP/1.1 100 Continue\r\n\r\n");
    outgoing_last_ = false;
    interim_ = true;
    write_next();
  }
  const auto time = state_->config.timeouts.body;
  auto deadline = Clock::now() + time;
  uint64_t goal = kBodyProgressBytes;
  for (;;) {
    if (!input_.empty()) feed(parser);
    if (parser.error()) {
      refusal_ = parser.error();
      co_return false;
    }
    if (parser.done()) co_return true;
    if (closing()) co_return false;
    if (parser.num_body_bytes() >= goal) {
      goal = parser.num_body_bytes() + kBodyProgressBytes;
      deadline = Clock::now() + time;
    }
    const auto end = receive_deadline(deadline);
    if (Clock::now() >= end) {
      refusal_ = too_late("the body of the request took too long");
      co_return false;
    }
    start_read();
    co_await changed(end);
  }
}

Connection::Clock::time_point Connection::receive_deadline(Clock::time_point deadline) {
  if (!state_->draining) return deadline;
  if (!drain_end_) drain_end_ = Clock::now() + state_->config.timeouts.drain;
  return std::min(deadline, *drain_end_);
}

ParseError Connection::too_late(const char* message) const {
  if (drain_end_) return {503, "the server is shutting down"};
  return {408, message};
}

AnswerFrame Connection::frame_of(const RequestHead& head) const {
  AnswerFrame frame;
  frame.http10 = head.http10;
  frame.head_only = head.method == "HEAD";
  frame.keep_alive = head.keep_alive;
  if (!state_->config.server_name.empty()) {
    frame.headers.emplace_back("Server", state_->config.server_name);
  }
  if (state_->config.request_id_headers) frame.headers.emplace_back("X-Request-Id", request_.id);
  for (auto& header : state_->cors.headers(request_)) frame.headers.push_back(std::move(header));
  return frame;
}

void Connection::make_exchange(AnswerFrame frame) {
  exchange_ = std::make_shared<ExchangeCore>(std::move(request_), std::move(frame), host_);
  // Weak: what is queued in an exchange must not keep its connection.
  exchange_->attach([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
  answer_done_ = false;
  asked_ = false;
  num_answer_bytes_ = 0;
}

awaitable<bool> Connection::answer_by_itself(const OwnAnswer& answer, bool keep_alive) {
  if (request_.id.empty()) request_.id = request_id("");
  AnswerFrame frame = frame_of(head_);
  frame.keep_alive = frame.keep_alive && keep_alive;
  make_exchange(std::move(frame));
  if (answer.message.empty()) {
    exchange_->respond(answer.status, "", "", answer.headers);
  } else {
    exchange_->respond_error(answer.status, answer.message, answer.headers);
  }
  const bool more = co_await finish_answer();
  co_return more;
}

awaitable<void> Connection::refuse(const ParseError& error) {
  unread_body_ = true;
  const OwnAnswer answer{error.status, error.message, {}};
  if (request_.path.empty()) request_.path = refused_path();
  co_await answer_by_itself(answer, false);
}

// The path of a request whose head is not whole or not right, where it can be told.
std::string Connection::refused_path() const {
  const std::string_view wanted = head_.target.empty() ? first_target(input_) : head_.target;
  auto target = parse_target(wanted, head_.method);
  if (!target.ok()) return {};
  return without_root(std::move(target.value().path), state_->config.root_path);
}

void Connection::dispatch(const Route& route) {
  in_flight_ = true;
  ++state_->num_in_flight;
  auto handle = ExchangeCore::make_handle(exchange_);
  try {
    route.handler(std::move(handle));
  } catch (const std::exception& error) {
    FT_LOG(error, "http: the handler of {} failed: {}", route.pattern, error.what());
  }
}

awaitable<bool> Connection::finish_answer() {
  const auto check = std::max(state_->config.timeouts.write / 4, std::chrono::milliseconds(1));
  auto look = kFirstPeerCheck;
  for (;;) {
    if (answer_done_ && !writing_) {
      const bool more = exchange_->keep_alive() && can_go_on();
      note(exchange_->status());
      end_exchange();
      co_return more;
    }
    const bool resting = !input_ended_ && input_.size() >= kReadAheadBytes;
    const bool silent = input_ended_ || (resting && stream_.peer_closed());
    if (write_failed_ || state_->stopping || (silent && stream_.peer_gone())) break;
    if (!resting) start_read();
    if (silent) ask_whether_gone();
    const auto wait = silent ? look : resting ? kPeerCheck : check;
    if (silent) look = std::min(2 * look, kPeerCheck);
    const bool woken = co_await changed(Clock::now() + std::min(check, wait));
    if (!woken && stalled()) break;
  }
  write_failed_ = true;
  note(kClientGone);
  end_exchange();
  co_return false;
}

void Connection::end_exchange() {
  if (exchange_ == nullptr) return;
  const auto exchange = std::exchange(exchange_, nullptr);
  exchange->detach();
  // Nothing can be said to the handler twice: this only marks an answer that is sent as over.
  if (!answer_done_) exchange->lost();
  if (std::exchange(in_flight_, false)) --state_->num_in_flight;
}

void Connection::note(int status) {
  if (!state_->config.access_log) return;
  const Request& request = exchange_->request();
  AccessRecord record;
  record.client = peer_.client;
  record.id = request.id;
  record.method = request.method;
  record.target = head_.target;
  record.pattern = pattern_;
  record.status = status;
  record.num_bytes = num_answer_bytes_;
  record.duration = Clock::now() - request.received;
  state_->config.access_log(record);
}

}  // namespace foretoken::http
