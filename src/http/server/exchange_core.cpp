#include "http/server/exchange_core.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace foretoken::http {
namespace {

// Pieces grow to about this size before the next one begins, so that many small writes leave in
// one packet and large ones are not copied.
constexpr size_t kPieceBytes = size_t{32} << 10;

class Handle final : public Exchange {
 public:
  explicit Handle(std::shared_ptr<ExchangeCore> core) : core_(std::move(core)) {}
  ~Handle() override { core_->dropped(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  const Request& request() const override { return core_->request(); }
  void respond(int status, const std::string& content_type, std::string body,
               Headers headers) override {
    core_->respond(status, content_type, std::move(body), headers);
  }
  void begin(int status, const std::string& content_type, Headers headers) override {
    core_->begin(status, content_type, headers);
  }
  void write(std::string bytes) override { core_->write(std::move(bytes)); }
  void end() override { core_->end(); }
  size_t num_queued_bytes() const override { return core_->num_queued_bytes(); }
  void post(std::function<void()> work) override { core_->post(std::move(work)); }
  void when_sent(std::function<void()> work) override { core_->when_sent(std::move(work)); }
  void when_gone(std::function<void()> work) override { core_->when_gone(std::move(work)); }
  bool gone() const override { return core_->gone(); }

 private:
  const std::shared_ptr<ExchangeCore> core_;
};

}  // namespace

ExchangeCore::ExchangeCore(Request request, AnswerFrame frame,
                           std::shared_ptr<const ExchangeHost> host)
    : request_(std::move(request)), frame_(std::move(frame)), host_(std::move(host)) {}

std::shared_ptr<Exchange> ExchangeCore::make_handle(const std::shared_ptr<ExchangeCore>& core) {
  return std::make_shared<Handle>(core);
}

void ExchangeCore::append(std::string bytes) {
  num_queued_.fetch_add(bytes.size(), std::memory_order_relaxed);
  if (pieces_.empty() || pieces_.back().size() + bytes.size() > kPieceBytes) {
    pieces_.push_back(std::move(bytes));
  } else {
    pieces_.back() += bytes;
  }
}

void ExchangeCore::start(int status, const std::string& content_type, const Headers& headers,
                         std::optional<size_t> length) {
  status_ = status;
  has_events_ = !length && content_type.starts_with("text/event-stream");
  const bool ends_with_connection = !length && frame_.http10 && frame_.has_body(status);
  keep_alive_ =
      frame_.keep_alive && !ends_with_connection && !asks_to_close(headers) && !host_->draining();
  append(make_answer_head(frame_, status, content_type, headers, length, keep_alive_));
}

bool ExchangeCore::needs_drain() { return !std::exchange(drain_posted_, true); }

void ExchangeCore::post_drain() {
  if (host_->post([self = shared_from_this()] { self->drain(); })) return;
  // Nobody will run the work, and what it holds may hold this exchange.
  std::vector<Work> works;
  const std::lock_guard lock(mutex_);
  works.swap(work_);
}

void ExchangeCore::respond(int status, const std::string& content_type, std::string body,
                           const Headers& headers) {
  bool drains = false;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kWaiting || gone()) return;
    start(status, content_type, headers, body.size());
    if (frame_.has_body(status) && !body.empty()) append(std::move(body));
    state_ = State::kEnded;
    drains = needs_drain();
  }
  if (drains) post_drain();
}

void ExchangeCore::respond_error(int status, const std::string& message, const Headers& headers) {
  respond(status, "application/json", host_->error_body(status, message, request_.path), headers);
}

void ExchangeCore::begin(int status, const std::string& content_type, const Headers& headers) {
  bool drains = false;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kWaiting || gone()) return;
    start(status, content_type, headers, std::nullopt);
    state_ = State::kBegun;
    drains = needs_drain();
  }
  if (drains) post_drain();
}

void ExchangeCore::write(std::string bytes) {
  bool drains = false;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kBegun || gone() || bytes.empty() || !frame_.has_body(status_)) return;
    if (frame_.is_chunked(status_)) {
      std::string chunk;
      append_chunk(chunk, bytes);
      bytes = std::move(chunk);
    }
    append(std::move(bytes));
    drains = needs_drain();
  }
  if (drains) post_drain();
}

void ExchangeCore::end() {
  bool drains = false;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kBegun || gone()) return;
    if (frame_.is_chunked(status_)) append(std::string(kLastChunk));
    state_ = State::kEnded;
    drains = needs_drain();
  }
  if (drains) post_drain();
}

void ExchangeCore::dropped() {
  bool drains = false;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kEnded || gone()) return;
    if (state_ == State::kBegun) {
      broken_ = true;
      state_ = State::kEnded;
      drains = needs_drain();
    }
  }
  if (drains) {
    post_drain();
  } else {
    respond_error(500, "the server dropped this request without an answer");
  }
}

void ExchangeCore::post(Work work) {
  bool drains = false;
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    drains = needs_drain();
  }
  if (drains) post_drain();
}

void ExchangeCore::when_sent(Work work) {
  post([this, work = std::move(work)] {
    if (num_queued_bytes() == 0) {
      work();
    } else {
      sent_work_.push_back(work);
    }
  });
}

void ExchangeCore::when_gone(Work work) {
  post([this, work = std::move(work)] {
    if (gone()) {
      work();
    } else if (!ended()) {
      gone_work_.push_back(work);
    }
  });
}

void ExchangeCore::run(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    FT_LOG(error, "http: work of a handler failed: {}", error.what());
  }
}

void ExchangeCore::run_all(std::vector<Work> works) {
  for (const Work& work : works) run(work);
}

void ExchangeCore::drain() {
  std::vector<Work> works;
  {
    const std::lock_guard lock(mutex_);
    works.swap(work_);
    drain_posted_ = false;
  }
  run_all(std::move(works));
  // Dropped here, not at the connection's end: what they hold may hold the exchange itself.
  if (ended()) std::vector<Work>().swap(gone_work_);
  if (on_output_) on_output_();
}

ExchangeCore::Output ExchangeCore::take() {
  const std::lock_guard lock(mutex_);
  Output output;
  output.pieces.swap(pieces_);
  output.last = state_ == State::kEnded;
  output.broken = broken_;
  return output;
}

void ExchangeCore::add_passed_over() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kWaiting && !frame_.http10) append("HTTP/1.1 100 Continue\r\n\r\n");
  if (state_ != State::kBegun || !has_events_ || !frame_.has_body(status_)) return;
  const std::string comment = ": \n\n";
  std::string chunk;
  if (frame_.is_chunked(status_)) append_chunk(chunk, comment);
  append(chunk.empty() ? comment : std::move(chunk));
}

void ExchangeCore::sent(size_t num_bytes) {
  if (num_queued_.fetch_sub(num_bytes, std::memory_order_relaxed) == num_bytes) {
    run_all(std::exchange(sent_work_, {}));
  }
}

void ExchangeCore::lost() {
  std::vector<Work> works;
  {
    const std::lock_guard lock(mutex_);
    if (gone_.exchange(true, std::memory_order_acq_rel)) return;
    if (state_ != State::kEnded) works.swap(gone_work_);
    pieces_.clear();
    num_queued_.store(0, std::memory_order_relaxed);
  }
  run_all(std::move(works));
  run_all(std::exchange(sent_work_, {}));
  std::vector<Work>().swap(gone_work_);
}

bool ExchangeCore::ended() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kEnded;
}

int ExchangeCore::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

bool ExchangeCore::keep_alive() const {
  const std::lock_guard lock(mutex_);
  return keep_alive_ && !broken_;
}

}  // namespace foretoken::http
