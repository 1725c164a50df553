#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "http/message/exchange.h"
#include "serve/flow/work_pool.h"

namespace foretoken {

// The events of a stream that goes on without a client, kept for those who ask later. Any thread.
class EventLog {
 public:
  // An exchange that keeps in `log` what is written to it, and never goes; its work runs on the
  // pool, a piece at a time. `pool` outlives the work.
  static std::shared_ptr<http::Exchange> make_exchange(std::shared_ptr<EventLog> log,
                                                       WorkPool& pool, http::Request request);

  // Whole events, each with an empty line behind it.
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
    int64_t after = -1;  // the number of the last event that it has, or does not want
  };

  // What it does not have yet; with the lock held.
  void tell(Follower& follower) const;

  mutable std::mutex mutex_;
  std::vector<std::string> events_;
  size_t num_bytes_ = 0;
  bool ended_ = false;
  std::vector<Follower> followers_;
};

}  // namespace foretoken
