#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "http/message/exchange.h"
#include "serve/flow/work_pool.h"

namespace foretoken {

// The bytes that logs of running streams hold together, and how many logs there are. A log that is
// full by this keeps its part: as much as each would have if all had the same. Any thread.
struct EventBudget {
  static constexpr size_t kMaxBytes = size_t{256} << 20;
  explicit EventBudget(size_t most = kMaxBytes) : max_bytes(most) {}

  const size_t max_bytes;
  std::atomic<size_t> num_bytes{0};
  std::atomic<size_t> num_logs{0};
};

// The events of a stream that goes on without a client, kept for those who ask later. A follower
// gets them as fast as it reads and holds no copy of what it has not read; one that is behind the
// events that were forgotten is told so by an event, and has its end. Any thread.
class EventLog : public std::enable_shared_from_this<EventLog> {
 public:
  // Of the latest events at most so many bytes are kept, and always the last event.
  static constexpr size_t kMaxBytes = size_t{32} << 20;
  // `budget`, unless null, bounds what this and others hold until they end.
  explicit EventLog(size_t max_bytes = kMaxBytes, std::shared_ptr<EventBudget> budget = nullptr);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // An exchange that keeps in `log` what is written to it, and never goes; its work runs on the
  // pool, a piece at a time. `pool` outlives the work.
  static std::shared_ptr<http::Exchange> make_exchange(std::shared_ptr<EventLog> log,
                                                       WorkPool& pool, http::Request request);

  // Whole events, each with an empty line behind it; comments are not kept, and are told to those
  // who have read everything.
  void add(std::string_view events);
  // Nothing follows: those who listen have their end.
  void end();

  // Answers with the events behind the one of this number (-1: all), and with those that come.
  void follow(const std::shared_ptr<http::Exchange>& exchange, int64_t after,
              const http::Headers& headers = {});

  size_t num_bytes() const;

 private:
  struct Follower {
    std::shared_ptr<http::Exchange> exchange;
    int64_t after = -1;     // the number of the last event that it has, or does not want
    bool waiting = false;   // until its connection has sent what it was told
    bool finished = false;  // nothing follows for it
  };

  // With the lock held.
  void forget_oldest();
  bool is_too_long() const;
  void leave_budget();
  int64_t num_events() const { return first_ + static_cast<int64_t>(events_.size()); }
  void tell_comment(std::string_view comment);
  void tell_all();
  // A piece of what it does not have yet; the next one when its connection has sent this one.
  void tell(const std::shared_ptr<Follower>& follower);
  void tell_more_when_sent(const std::shared_ptr<Follower>& follower);

  const size_t max_bytes_;
  const std::shared_ptr<EventBudget> budget_;
  mutable std::mutex mutex_;
  std::deque<std::string> events_;
  int64_t first_ = 0;  // the number of the first one that is kept
  size_t num_bytes_ = 0;
  bool ended_ = false;
  std::vector<std::shared_ptr<Follower>> followers_;
};

}  // namespace foretoken
