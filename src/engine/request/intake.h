#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "engine/request/request_state.h"

namespace foretoken {

// Hands requests and wishes to end them from any thread to the engine thread, without allocating.
class Intake {
 public:
  // Any thread. The engine thread owns the record from here on; false, and nothing is taken, once
  // the engine thread has closed the intake.
  bool push(RequestState* request) { return push_chain(request, request); }
  // The same for several records at once: `newest` leads to `oldest` through next_submitted.
  bool push_chain(RequestState* newest, RequestState* oldest);
  // Any thread: some record's end_requested was set.
  void announce_end();
  // Any thread: the engine thread shall plan again (a sequence is held no longer).
  void announce_change();
  // Any thread: the engine thread shall look again and stop.
  void stop();

  // Engine thread: all new records in order of arrival, linked by next_submitted, or null.
  RequestState* take() { return take_and_leave(nullptr); }
  // Engine thread: the last take; later pushes fail.
  RequestState* take_and_close() { return take_and_leave(closed()); }
  bool take_end_announcement() { return end_announced_.exchange(false); }
  bool take_change_announcement() { return change_announced_.exchange(false); }
  bool stopping() const { return stopping_.load(); }
  // Whether `wait` would return at once: what the engine thread has not taken yet. Any thread.
  bool has_news() const {
    return head_.load() != nullptr || end_announced_.load() || change_announced_.load() ||
           stopping_.load();
  }
  // Engine thread: parks until there is something to take, an announcement, or a stop.
  void wait();
  // The same, but no longer than until now_ns() is `until_ns`.
  void wait_until(int64_t until_ns);

 private:
  // A value of head_ that is no record.
  RequestState* closed() { return reinterpret_cast<RequestState*>(this); }
  RequestState* take_and_leave(RequestState* left);
  void wake();

  std::atomic<RequestState*> head_{nullptr};  // newest first
  std::atomic<bool> end_announced_{false};
  std::atomic<bool> change_announced_{false};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace foretoken
