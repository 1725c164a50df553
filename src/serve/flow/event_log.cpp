#include "serve/flow/event_log.h"

#include <utility>

#include "serve/answer/sse.h"

namespace foretoken {
namespace {

constexpr std::string_view kEventEnd = "\n\n";
// Bytes of events that a connection holds unsent, but for an event that is larger.
constexpr size_t kMaxPiece = 64 * 1024;
constexpr std::string_view kForgotten =
    "event: error\ndata: {\"type\":\"error\",\"code\":\"events_forgotten\",\"message\":\"the next "
    "events of this response are not kept any more; get the response without 'stream'\","
    "\"param\":null}\n\n";

class KeptExchange final : public http::Exchange,
                           public std::enable_shared_from_this<KeptExchange> {
 public:
  KeptExchange(std::shared_ptr<EventLog> log, WorkPool& pool, http::Request request)
      : log_(std::move(log)), pool_(pool), request_(std::move(request)) {}
  ~KeptExchange() override { log_->end(); }
  KeptExchange(const KeptExchange&) = delete;
  KeptExchange& operator=(const KeptExchange&) = delete;

  const http::Request& request() const override { return request_; }
  // An error before the first event.
  void respond(int, const std::string&, std::string body, http::Headers) override {
    log_->add("event: error\ndata: " + body + std::string(kEventEnd));
    log_->end();
  }
  void begin(int, const std::string&, http::Headers) override {}
  void write(std::string bytes) override { log_->add(bytes); }
  void end() override { log_->end(); }
  size_t num_queued_bytes() const override { return 0; }
  void post(std::function<void()> work) override {
    pool_.post([self = shared_from_this(), work = std::move(work)] {
      const std::lock_guard lock(self->mutex_);
      work();
    });
  }
  void when_sent(std::function<void()> work) override { post(std::move(work)); }
  void when_gone(std::function<void()>) override {}
  bool gone() const override { return false; }

 private:
  const std::shared_ptr<EventLog> log_;
  WorkPool& pool_;
  const http::Request request_;
  std::mutex mutex_;  // of the work
};

}  // namespace

EventLog::EventLog(size_t max_bytes, std::shared_ptr<EventBudget> budget)
    : max_bytes_(max_bytes), budget_(std::move(budget)) {
  if (budget_ != nullptr) ++budget_->num_logs;
}

EventLog::~EventLog() {
  if (!ended_) leave_budget();
}

void EventLog::leave_budget() {
  if (budget_ == nullptr) return;
  budget_->num_bytes -= num_bytes_;
  --budget_->num_logs;
}

std::shared_ptr<http::Exchange> EventLog::make_exchange(std::shared_ptr<EventLog> log,
                                                        WorkPool& pool, http::Request request) {
  return std::make_shared<KeptExchange>(std::move(log), pool, std::move(request));
}

void EventLog::add(std::string_view events) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  for (std::string_view rest = events; !rest.empty();) {
    const size_t at = rest.find(kEventEnd);
    const size_t size = at == std::string_view::npos ? rest.size() : at + kEventEnd.size();
    const std::string_view one = rest.substr(0, size);
    rest.remove_prefix(size);
    // Comments, which keep connections alive, have no number.
    if (one.front() == ':') {
      tell_comment(one);
      continue;
    }
    events_.emplace_back(one);
    num_bytes_ += one.size();
    if (budget_ != nullptr) budget_->num_bytes += one.size();
  }
  tell_all();
  while (events_.size() > 1 && is_too_long()) forget_oldest();
}

bool EventLog::is_too_long() const {
  if (num_bytes_ > max_bytes_) return true;
  if (budget_ == nullptr || budget_->num_bytes <= budget_->max_bytes) return false;
  return num_bytes_ > budget_->max_bytes / budget_->num_logs;
}

void EventLog::forget_oldest() {
  const size_t size = events_.front().size();
  num_bytes_ -= size;
  if (budget_ != nullptr) budget_->num_bytes -= size;
  events_.pop_front();
  ++first_;
}

void EventLog::tell_comment(std::string_view comment) {
  for (const auto& follower : followers_) {
    const bool has_all = !follower->waiting && follower->after + 1 >= num_events();
    if (has_all && follower->exchange->num_queued_bytes() == 0) {
      follower->exchange->write(std::string(comment));
    }
  }
}

void EventLog::tell_all() {
  for (const auto& follower : followers_) tell(follower);
  std::erase_if(followers_, [](const auto& one) { return one->finished; });
}

void EventLog::tell(const std::shared_ptr<Follower>& follower) {
  Follower& one = *follower;
  if (one.waiting || one.finished) return;
  if (one.exchange->gone()) {
    one.finished = true;
    return;
  }
  if (one.exchange->num_queued_bytes() > kMaxPiece) return tell_more_when_sent(follower);
  std::string news;
  if (one.after + 1 < first_) {
    news = kForgotten;
    one.finished = true;
  }
  while (!one.finished && one.after + 1 < num_events() && news.size() < kMaxPiece) {
    news += events_[static_cast<size_t>(++one.after - first_)];
  }
  if (!news.empty()) one.exchange->write(std::move(news));
  if (!one.finished && one.after + 1 < num_events()) return tell_more_when_sent(follower);
  one.finished = one.finished || ended_;
  if (one.finished) one.exchange->end();
}

void EventLog::tell_more_when_sent(const std::shared_ptr<Follower>& follower) {
  follower->waiting = true;
  follower->exchange->when_sent([log = shared_from_this(), follower] {
    const std::lock_guard lock(log->mutex_);
    follower->waiting = false;
    log->tell(follower);
    if (follower->finished) std::erase(log->followers_, follower);
  });
}

void EventLog::end() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(ended_, true)) return;
  leave_budget();
  tell_all();
}

void EventLog::follow(const std::shared_ptr<http::Exchange>& exchange, int64_t after,
                      const http::Headers& headers) {
  const std::lock_guard lock(mutex_);
  begin_events(*exchange, headers);
  const auto follower = std::make_shared<Follower>(Follower{exchange, after});
  followers_.push_back(follower);
  tell(follower);
  if (follower->finished) std::erase(followers_, follower);
}

size_t EventLog::num_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_bytes_;
}

}  // namespace foretoken
