#include "serve/flow/event_log.h"

#include <algorithm>
#include <utility>

#include "serve/answer/sse.h"

namespace foretoken {
namespace {

constexpr std::string_view kEventEnd = "\n\n";

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
    // Comments, which keep connections alive, have no number.
    if (rest.front() != ':') events_.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  num_bytes_ += events.size();
  std::erase_if(followers_, [](const Follower& one) { return one.exchange->gone(); });
  for (Follower& follower : followers_) tell(follower);
}

void EventLog::tell(Follower& follower) const {
  const auto count = static_cast<int64_t>(events_.size());
  std::string news;
  for (int64_t i = follower.after + 1; i < count; ++i) news += events_[static_cast<size_t>(i)];
  follower.after = std::max(follower.after, count - 1);
  if (!news.empty()) follower.exchange->write(std::move(news));
}

void EventLog::end() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(ended_, true)) return;
  for (const Follower& follower : std::exchange(followers_, {})) follower.exchange->end();
}

void EventLog::follow(const std::shared_ptr<http::Exchange>& exchange, int64_t after,
                      const http::Headers& headers) {
  const std::lock_guard lock(mutex_);
  begin_events(*exchange, headers);
  Follower follower{exchange, after};
  tell(follower);
  if (ended_) return exchange->end();
  followers_.push_back(std::move(follower));
}

size_t EventLog::num_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_bytes_;
}

}  // namespace foretoken
